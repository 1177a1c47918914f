"""The small process between us and a child, so that the child never outlives us.

Run as a script, alone (`python -I -S guard.py GRACE COMMAND…`), with the standard library only.

    parent ──(pipe: the guard's standard input)──► guard ──► child, in a session of its own

The parent holds the only write end of the pipe. When it is gone, however it went (`kill -9`
included), the kernel closes the pipe, the guard reads the end of its input and stops the child:
SIGTERM, then after the grace SIGKILL for the child's whole group. The parent stops a child on
purpose in the same way, so the road that matters most is the one that is used every day. It needs
no signal from the kernel and does not care which thread of the parent started the child.

Should the guard itself be killed, the kernel kills the child (Linux only: PR_SET_PDEATHSIG, safe
here because the guard has one thread).

The guard writes the child's process id as one line on its standard output, gives the child its
standard error as both outputs, and ends with the child's exit code.
"""

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_COMMAND_NOT_FOUND = 127
_BY_SIGNAL = 128  # a shell's way to say "ended by signal N"
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(arguments: list[str]) -> int:
    """Guard one command until it ends or the parent is gone.

    Args:
        arguments: seconds between SIGTERM and SIGKILL, then the command.

    Returns:
        The child's exit code; 128 + n if signal n ended it; 127 if it could not be started.
    """
    grace_s, command = float(arguments[0]), arguments[1:]
    woken = _wake_on_signals()
    try:
        child = subprocess.Popen(  # noqa: S603 - the parent says what to run
            command,
            stdin=subprocess.DEVNULL,
            stdout=2,
            stderr=2,
            start_new_session=True,
            preexec_fn=_die_with(os.getpid()),  # noqa: PLW1509 - one thread only
        )
    except OSError as error:
        sys.stderr.write(f"cannot start {command[0]}: {error}\n")
        return _COMMAND_NOT_FOUND
    try:
        os.write(1, f"{child.pid}\n".encode())
        _wait_for_end(child, woken)
    except BrokenPipeError:
        pass  # the parent went before it could listen: stop the child
    finally:
        _stop(child, woken, grace_s)
    return child.returncode if child.returncode >= 0 else _BY_SIGNAL - child.returncode


def _wake_on_signals() -> int:
    """Make each signal a byte in a pipe that a selector can wait for; gives the read end."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, *_STOP_SIGNALS):
        # A function, not SIG_IGN, which the child would inherit.
        signal.signal(number, lambda *_: None)
    return read_end


def _die_with(guard: int) -> Callable[[], None] | None:
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)

    def in_child() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:  # it died before the line above
            os._exit(_BY_SIGNAL + signal.SIGKILL)

    return in_child


def _wait_for_end(child: "subprocess.Popen[bytes]", woken: int) -> None:
    """Return when the child ended, the parent is gone, or someone asked the guard to stop."""
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while child.poll() is None:
            ready = {key.fd for key, _ in selector.select()}
            if 0 in ready and not os.read(0, 512):
                return
            if woken in ready and any(n in _STOP_SIGNALS for n in os.read(woken, 512)):
                return


def _stop(child: "subprocess.Popen[bytes]", woken: int, grace_s: float) -> None:
    """SIGTERM for the child, which may still need its own children; then SIGKILL for the group."""
    if child.poll() is None:
        child.terminate()
    ends_at = time.monotonic() + grace_s
    with selectors.DefaultSelector() as selector:
        selector.register(woken, selectors.EVENT_READ)
        while child.poll() is None and time.monotonic() < ends_at:
            if selector.select(max(0.0, ends_at - time.monotonic())):
                os.read(woken, 512)
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: EPERM for zombies
        os.killpg(child.pid, signal.SIGKILL)  # its session: the id of the group is its own
    child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
