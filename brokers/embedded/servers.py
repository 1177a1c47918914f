"""Java servers on loopback: start with folder and log, readiness check, free ports."""

import importlib.resources
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from brokers.embedded.java import Java
from brokers.embedded.processes import Child, ChildSpec, start_child
from brokers.ports import holder_of_port
from pipeline.clock import Clock, Deadline
from pipeline.errors import EnvironmentProblem, RetryError, UnavailableError

LOOPBACK = "127.0.0.1"
READY_WITHIN_S = 120.0
"""Three seconds are usual; a busy machine takes many times that."""
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Place:
    """Data folder, Java and lock of one stack.

    `lock` is the file descriptor of the stack's lock; every guard keeps it open, so that no other
    process locks the folder before the last server has ended.
    """

    data: Path
    java: Java
    lock: int

    @property
    def logs(self) -> Path:
        """The folder of all log files."""
        return self.data / "logs"


@dataclass(frozen=True, slots=True)
class JavaServer:
    """A server to start: its main class with arguments, heap limit and class path.

    It runs in `<data>/<name>`. Paths in its files and options are relative to that, because Java
    reads neither property files nor (in the C locale) options with non-ASCII letters correctly.
    """

    name: str
    main: tuple[str, ...]
    heap_mb: int
    class_path: str
    options: tuple[str, ...] = ()
    grace_s: float = 15.0


def start_server(place: Place, server: JavaServer) -> Child:
    """Start a server; it is not ready yet."""
    folder = place.data / server.name
    log = place.logs / f"{server.name}.log"
    configuration = importlib.resources.files(__package__).joinpath("log4j2.properties")
    write_file(folder / "log4j2.properties", configuration.read_text())
    place.logs.mkdir(parents=True, exist_ok=True)
    command = (
        str(place.java.executable),
        f"-Xmx{server.heap_mb}m",
        "-Djava.awt.headless=true",
        "-Dlog4j2.configurationFile=log4j2.properties",
        f"-Dmedusa.log=../logs/{log.name}",
        *server.options,
        *("-cp", server.class_path),
        *server.main,
    )
    output = place.logs / f"{server.name}.out"
    spec = ChildSpec(server.name, command, output, folder, logs=(log,), grace_s=server.grace_s)
    return start_child(spec, pass_fds=(place.lock,))


def wait_until_ready(
    child: Child, port: int, answers: Callable[[float], object], clock: Clock
) -> None:
    """Wait until a server answers in its own protocol.

    Args:
        child: the server's process.
        port: its TCP port; probed first, because a refused connection costs nothing.
        answers: sends one request; its argument is the timeout in seconds; it raises
            `UnavailableError` or `RetryError` when there is no answer yet.
        clock: time.

    Raises:
        EnvironmentProblem: it ended, or did not answer in time; with its last log lines.
    """
    deadline = Deadline.after(clock, READY_WITHIN_S, f"starting {child.spec.name}")
    while not deadline.passed:
        if not child.running:
            raise child.failure(f"it ended with exit code {child.exit_code} while starting")
        if _listens(port):
            try:
                answers(min(5.0, max(0.5, deadline.remaining_s())))
            except (UnavailableError, RetryError):
                pass
            else:
                return
        clock.sleep(_POLL_S)
    raise child.failure(f"it was not ready within {READY_WITHIN_S:g} s")


def require_free_port(port: int, setting: str) -> None:
    """Check that no process listens on a port.

    Raises:
        EnvironmentProblem: the port is taken; names the process if the system reveals it.
    """
    if is_free(port):
        return
    holder = holder_of_port(port)
    raise EnvironmentProblem(
        f"port {port} is taken{f' by {holder}' if holder else ''}",
        place=setting,
        hint="stop that process, or choose another port for this one",
    )


def is_free(port: int) -> bool:
    """Whether a server could listen on a port of loopback now."""
    with socket.socket() as probe:
        # As the servers do: a port with connections in TIME_WAIT only is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def write_file(path: Path, text: str) -> None:
    """Write a file atomically, and create its folder.

    Raises:
        EnvironmentProblem: the folder cannot be written.
    """
    partial = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise EnvironmentProblem(
            f"the data folder cannot be written: {error.strerror}",
            place=str(path.parent),
            hint="choose another one with --data or MEDUSA_DATA",
        ) from error


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((LOOPBACK, port)) == 0
