"""Guard process of a child: stops the child when the parent process ends, for any reason.

Run as a script (`python -I -S guard.py GRACE COMMAND…`), with the standard library only.

    parent ──(pipe: the guard's standard input)──► guard ──► child, in a session of its own

The parent has the only write end of the pipe. When the parent ends for any reason (`kill -9`
included), the kernel closes the pipe, the guard reads the end of its input and stops the child:
SIGTERM, then after the grace SIGKILL for the child's whole process group. The parent stops a child
deliberately in the same way, so the code path that matters most is in daily use. It needs no signal
from the kernel and works for any thread of the parent that starts the child.

Should the guard itself be killed, the kernel kills the child (Linux only: PR_SET_PDEATHSIG, safe
here because the guard has one thread).

The guard writes the child's process id as one line to its standard output, redirects both outputs
of the child to its own standard error, and ends with the child's exit code.
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
_BY_SIGNAL = 128  # a shell's exit code for "ended by signal N" is 128 + N
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(arguments: list[str]) -> int:
    """Run one command until it ends or the parent has ended.

    Args:
        arguments: seconds between SIGTERM and SIGKILL, then the command.

    Returns:
        The child's exit code; 128 + n if signal n ended it; 127 if it could not be started.
    """
    grace_s, command = float(arguments[0]), arguments[1:]
    woken = _wake_on_signals()
    try:
        child = subprocess.Popen(  # noqa: S603 - the parent chooses the command
            command,
            stdin=subprocess.DEVNULL,
            stdout=2,
            stderr=2,
            start_new_session=True,
            preexec_fn=_parent_death_signal(os.getpid()),  # noqa: PLW1509 - one thread only
        )
    except OSError as error:
        sys.stderr.write(f"cannot start {command[0]}: {error}\n")
        return _COMMAND_NOT_FOUND
    try:
        os.write(1, f"{child.pid}\n".encode())
        _wait_for_end(child, woken)
    except BrokenPipeError:
        pass  # the parent ended before it read the id: stop the child
    finally:
        _stop(child, woken, grace_s)
    return child.returncode if child.returncode >= 0 else _BY_SIGNAL - child.returncode


def _wake_on_signals() -> int:
    """Write each signal as a byte to a pipe that a selector can wait for; returns the read end."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, *_STOP_SIGNALS):
        # A function, not SIG_IGN, which the child would inherit.
        signal.signal(number, lambda *_: None)
    return read_end


def _parent_death_signal(guard: int) -> Callable[[], None] | None:
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)

    def in_child() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:  # the guard ended before the line above
            os._exit(_BY_SIGNAL + signal.SIGKILL)

    return in_child


def _wait_for_end(child: "subprocess.Popen[bytes]", woken: int) -> None:
    """Return when the child or the parent has ended, or the guard received a stop signal."""
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
    """Send SIGTERM to the child, which may still need its own children; then SIGKILL the group."""
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
