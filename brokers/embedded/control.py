"""Lock and control file of a data folder, by which a process finds and stops a running stack.

The lock (`stack.lock`) is authoritative: it is locked from the start until the last server has
ended, since the guards keep it open too. `stack.json` contains the process that locked it and the
addresses of the servers; it may be left over from a process that was killed.
"""

import fcntl
import json
import os
import shlex
import signal
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from brokers.embedded.servers import write_file
from pipeline.clock import Clock, Deadline
from pipeline.errors import EnvironmentProblem, RefusedError, RetryError
from pipeline.system_clock import SystemClock

CONTROL_FORMAT = 1
STOP_WITHIN_S = 60.0
_AFTER_KILL_S = 30.0
_LAST_STACK_ENDS_WITHIN_S = 30.0
_POLL_S = 0.1
_START_TIME_FIELD = 19
"""Field 22 of /proc/<pid>/stat, counted after the name, which may contain any character."""


@dataclass(frozen=True, slots=True)
class Member:
    """One process of a stack."""

    name: str
    pid: int


@dataclass(frozen=True, slots=True)
class ControlFile:
    """The content of `stack.json`.

    `pid` is the process that runs the stack. `born` is its start time as the system reports it: a
    later process with the same id has another one. `started_at_ms` is wall time.
    """

    pid: int
    born: str
    started_at_ms: int
    kafka_bootstrap_servers: str
    zookeeper_connect: str
    registry_url: str
    members: tuple[Member, ...]
    format: int


class Stopped(Enum):
    """The result of `stop_running`."""

    NOTHING_RAN = "nothing ran"
    ENDED = "ended"
    KILLED = "killed"


def control_path(data: Path) -> Path:
    """The path of a data folder's control file."""
    return data / "stack.json"


def folder_problem(data: Path, error: OSError) -> EnvironmentProblem:
    """The error about a data folder that cannot be used; names a file that blocks its path."""
    in_the_way = next((place for place in (data, *data.parents) if _is_file(place)), None)
    return EnvironmentProblem(
        f"{in_the_way} is a file, so that the data folder cannot be there"
        if in_the_way
        else f"the data folder cannot be written: {error.strerror}",
        place=str(data),
        hint="choose another one with --data or MEDUSA_DATA",
    )


def _is_file(place: Path) -> bool:
    """Whether a path is a file; False if it may not be read."""
    try:
        return place.is_file()
    except OSError:
        return False


def write_control(data: Path, control: ControlFile) -> None:
    """Write the control file of a stack, for other processes."""
    write_file(control_path(data), json.dumps(asdict(control), indent=1))


def read_control(data: Path) -> ControlFile | None:
    """Read the control file of a folder; None if no stack ran or the last one ended cleanly.

    Raises:
        EnvironmentProblem: the file is not one of ours.
    """
    try:
        stored = json.loads(control_path(data).read_text(encoding="utf-8"))
        members = tuple(Member(**member) for member in stored["members"])
        control = ControlFile(**{**stored, "members": members})
    except FileNotFoundError:
        return None
    except (NotADirectoryError, PermissionError) as error:
        raise folder_problem(data, error) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EnvironmentProblem(
            f"stack.json cannot be read: {error}",
            place=str(data),
            hint="another version of medusa may have made it; remove it if nothing runs there",
        ) from error
    if control.format != CONTROL_FORMAT:
        raise EnvironmentProblem(
            f"stack.json has format {control.format}, not {CONTROL_FORMAT}",
            place=str(data),
            hint="stop the stack with the version of medusa that started it",
        )
    return control


def running_stack(data: Path) -> ControlFile | None:
    """The stack that runs in a folder now, or None."""
    control = read_control(data)
    return control if control is not None and _is_alive(control) else None


def take_lock(data: Path, clock: Clock) -> int:
    """Lock a data folder for this process.

    Waits until the remaining servers of a stack that was killed have ended.

    Returns:
        The lock's file descriptor; closing it releases the lock.

    Raises:
        RefusedError: a stack runs there; names its process.
        EnvironmentProblem: the folder cannot be written.
        RetryError: the remaining servers of the last stack do not end.
    """
    try:
        data.mkdir(parents=True, exist_ok=True)
        lock = os.open(data / "stack.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise folder_problem(data, error) from error
    with ExitStack() as undo:
        undo.callback(os.close, lock)
        _wait_for_lock(data, lock, clock)
        undo.pop_all()
    return lock


def stop_running(
    data: Path, within_s: float = STOP_WITHIN_S, clock: Clock | None = None
) -> Stopped:
    """Send SIGTERM to the process that runs a stack, and wait until all its servers have ended.

    After `within_s` seconds the process is killed; its guards then end the servers.

    Raises:
        RetryError: a server still runs after that.
        EnvironmentProblem: the process belongs to another user.
    """
    clock = clock or SystemClock()
    control = running_stack(data)
    if control is None:
        return Stopped.NOTHING_RAN
    _signal(control, signal.SIGTERM)
    if _ended(data, Deadline.after(clock, within_s, "stopping"), clock):
        return Stopped.ENDED
    _signal(control, signal.SIGKILL)
    if _ended(data, Deadline.after(clock, _AFTER_KILL_S, "stopping"), clock):
        control_path(data).unlink(missing_ok=True)
        return Stopped.KILLED
    raise RetryError(
        f"process {control.pid} was killed, but not all of its servers have ended",
        place=str(data),
        hint=f"they are {', '.join(f'{m.name} ({m.pid})' for m in control.members)}",
    )


def process_born(pid: int) -> str | None:
    """Start time of a process in the system's format, which serves only to be compared."""
    if sys.platform.startswith("linux"):
        try:
            status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return None
        state, *fields = status.rpartition(")")[2].split()
        return None if state == "Z" else fields[_START_TIME_FIELD - 1]
    answer = subprocess.run(  # noqa: S603 - fixed words and a number
        ["/bin/ps", "-o", "lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
        timeout=10.0,
    )
    return answer.stdout.strip() or None


def _is_alive(control: ControlFile) -> bool:
    return process_born(control.pid) == control.born


def _wait_for_lock(data: Path, lock: int, clock: Clock) -> None:
    deadline = Deadline.after(clock, _LAST_STACK_ENDS_WITHIN_S, "the end of the last stack")
    while not _try_lock(lock):
        other = running_stack(data)
        if other is not None:
            raise RefusedError(
                f"a stack runs here already: process {other.pid}",
                place=str(data),
                hint=f"`{shlex.join(('medusa', 'down', '--data', str(data)))}` stops it; or choose "
                "another data folder",
            )
        deadline.check(f"something still holds {data / 'stack.lock'}")
        clock.sleep(_POLL_S)


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _signal(control: ControlFile, number: signal.Signals) -> None:
    if not _is_alive(control):
        return
    try:
        os.kill(control.pid, number)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise EnvironmentProblem(
            f"process {control.pid} belongs to another user", hint="stop it as that user"
        ) from error


def _ended(data: Path, deadline: Deadline, clock: Clock) -> bool:
    """Whether the lock became free before the deadline, which is when the last server ended."""
    lock = os.open(data / "stack.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        while not (free := _try_lock(lock)) and not deadline.passed:
            clock.sleep(_POLL_S)
        return free
    finally:
        os.close(lock)
