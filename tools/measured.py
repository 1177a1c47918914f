"""Measurement of a command's process tree: wall seconds, CPU seconds, surviving processes.

`python tools/measured.py [--ends-within=S] REPORT COMMAND…` writes a JSON object to the file REPORT
and ends with the command's exit code, or with 70 if processes of the command survived it by S
seconds.

On Linux this process is a subreaper (prctl(2)): orphans of the command become its children, so
their CPU time counts, and processes that outlive the command are found. Elsewhere they are not.
"""

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

LEFT_BEHIND = 70
_PR_SET_CHILD_SUBREAPER = 36
_ENDS_WITHIN_S = 30.0
"""Default; an orderly stop of Kafka, the slowest of all, takes up to 15 s."""
_OPTION = "--ends-within="
_POLL_S = 0.05


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit code."""
    ends_within_s = _ENDS_WITHIN_S
    if arguments[0].startswith(_OPTION):
        ends_within_s = float(arguments.pop(0).removeprefix(_OPTION))
    report, *command = arguments
    began_s = time.monotonic()
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    child = subprocess.Popen(command)
    signal.signal(signal.SIGTERM, lambda number, _: child.send_signal(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the command, too
    code = _reap_until(child)
    left = _reap_rest(ends_within_s)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = {
        "wall_s": time.monotonic() - began_s,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "left_behind": left,
    }
    Path(report).write_text(json.dumps(found), encoding="utf-8")
    return code or (LEFT_BEHIND if left else 0)


def _reap_until(child: "subprocess.Popen[bytes]") -> int:
    """Reap every process that ends, until the command itself does; returns its exit code."""
    while True:
        pid, status = os.wait()
        if pid == child.pid:
            code = os.waitstatus_to_exitcode(status)
            child.returncode = code
            return code if code >= 0 else 128 - code


def _reap_rest(ends_within_s: float) -> list[str]:
    """Wait for orphans to end; kill those that do not, and return their command lines."""
    ends_at = time.monotonic() + ends_within_s
    while time.monotonic() < ends_at:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return []
        if pid == 0:
            time.sleep(_POLL_S)
    left = []
    for child in _children():
        left.append(f"process {child}: {_command_line(child)}")
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return left


def _children() -> list[int]:
    """Processes whose parent is this one."""
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    return [int(pid) for pid in text.split()]


def _command_line(pid: int) -> str:
    text = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    return text.decode(errors="replace").strip()[:200]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
