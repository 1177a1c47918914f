"""How one process finds, and stops, the stack that another one runs in a data folder.

The lock (`stack.lock`) is the truth: it is held from the start until the last server has ended,
since the guards hold it too. `stack.json` tells who holds it and where the servers listen; it may
be left over from a process that was killed.
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
"""Field 22 of /proc/<pid>/stat, counted behind the name, which may hold anything."""


@dataclass(frozen=True, slots=True)
class Member:
    """One process of a stack."""

    name: str
    pid: int


@dataclass(frozen=True, slots=True)
class ControlFile:
    """What `stack.json` tells.

    `pid` is the process that runs the stack and `born` when the system says it was started, by
    which a later process with the same number is told apart. `started_at_ms` is wall time.
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
    """How `stop_running` ended."""

    NOTHING_RAN = "nothing ran"
    ENDED = "ended"
    KILLED = "killed"


def control_path(data: Path) -> Path:
    """Where a stack tells about itself."""
    return data / "stack.json"


def folder_problem(data: Path, error: OSError) -> EnvironmentProblem:
    """What to say of a data folder that cannot be used; names the file that is in its way."""
    in_the_way = next((place for place in (data, *data.parents) if _is_file(place)), None)
    return EnvironmentProblem(
        f"{in_the_way} is a file, so that the data folder cannot be there"
        if in_the_way
        else f"the data folder cannot be written: {error.strerror}",
        place=str(data),
        hint="choose another one with --data or MEDUSA_DATA",
    )


def _is_file(place: Path) -> bool:
    """Also where one may not look."""
    try:
        return place.is_file()
    except OSError:
        return False


def write_control(data: Path, control: ControlFile) -> None:
    """Tell other processes about a stack."""
    write_file(control_path(data), json.dumps(asdict(control), indent=1))


def read_control(data: Path) -> ControlFile | None:
    """What the last stack in a folder told; None if there was none or it ended in order.

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
    """The stack that runs in a folder now; None if none does."""
    control = read_control(data)
    return control if control is not None and _is_alive(control) else None


def take_lock(data: Path, clock: Clock) -> int:
    """Take a data folder for this process.

    Waits for the servers of a stack that was killed and has not quite ended.

    Returns:
        The lock's file descriptor; closing it gives the folder back.

    Raises:
        RefusedError: a stack runs there; names its process.
        EnvironmentProblem: the folder cannot be written.
        RetryError: what is left of the last stack does not end.
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
    """Ask the process that runs a stack to end it, and wait until all of it has ended.

    After `within_s` seconds the process is killed; its guards then end the servers.

    Raises:
        RetryError: even so it does not end.
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
    """When the system says that a process was started, in words that only serve to compare."""
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
    """Whether the lock became free in time, which is when the last server has ended."""
    lock = os.open(data / "stack.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        while not (free := _try_lock(lock)) and not deadline.passed:
            clock.sleep(_POLL_S)
        return free
    finally:
        os.close(lock)
