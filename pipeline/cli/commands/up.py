"""`medusa up`: Kafka, ZooKeeper, a schema registry and one node on this machine."""

import os
import shlex
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import combinations
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from brokers.embedded.class_archive import ensure_archive
from brokers.embedded.processes import Child, ChildSpec
from brokers.embedded.progress import Step
from brokers.embedded.stack import STOPPING, EmbeddedStack, StackSettings
from pipeline.cli.addresses import port_of
from pipeline.cli.detached import ARCHIVE_PROGRAM, StartupReporter, medusa_command, start_detached
from pipeline.cli.node_lock import only_node
from pipeline.cli.options import with_session
from pipeline.cli.progress import StepPrinter
from pipeline.cli.project import FLAG, PROJECT_FILE, Project
from pipeline.cli.session import Session
from pipeline.cli.supervise import Supervisor
from pipeline.clock import Deadline
from pipeline.errors import RefusedError
from pipeline.settings import SETTINGS, Settings
from schemas.embedded import start_registry

_NODE_READY_WITHIN_S = 90.0
_NODE_ENDS_WITHIN_S = 40.0
"""A node stops its lanes at batch boundaries, within half a minute."""
_POLL_S = 0.1
_WATCH_S = 0.5
_PORT = click.IntRange(1, 65535)


@click.command("up")
@click.option(
    "--detach", is_flag=True, help="Return when all of it is ready; `medusa down` ends it."
)
@click.option("--no-node", is_flag=True, help="Start the servers only.")
@click.option("--kafka-port", type=_PORT, help="Default: the port of kafka.bootstrap_servers.")
@click.option("--zookeeper-port", type=_PORT, help="Default: the port of zookeeper.connect.")
@click.option("--registry-port", type=_PORT, help="Default: the port of registry.url.")
@click.option("--tell-fd", type=int, hidden=True, help="Where to report progress.")
@with_session
def command(
    session: Session,
    *,
    detach: bool,
    no_node: bool,
    kafka_port: int | None,
    zookeeper_port: int | None,
    registry_port: int | None,
    tell_fd: int | None,
) -> None:
    """Start Kafka, ZooKeeper, a schema registry and one node on this machine.

    Stays until Ctrl-C, or returns when ready with --detach. Data are kept in the data folder across
    restarts: .medusa in the project, or the folder of --data; without either nothing is started.
    The first start fetches jars into a cache; later ones need no network.

    Ports that are chosen here hold for this run: commands of this project use them as long as it
    lasts, other programs need the addresses. To keep them, write them into medusa.yaml.

    \b
    Examples:
      medusa up
      medusa up --detach
      medusa up --kafka-port 19092 --zookeeper-port 12181 --registry-port 18081
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    settings = session.settings
    _refuse_secured(settings)
    stack_settings = StackSettings(
        session.project.data,
        Path(settings.cache),
        kafka_port or port_of("kafka.bootstrap_servers", settings.kafka_bootstrap_servers),
        zookeeper_port or port_of("zookeeper.connect", settings.zookeeper_connect),
        registry_port or port_of("registry.url", settings.registry_url),
    )
    _refuse_shared_ports(stack_settings)
    _require_data_folder(session.project)
    if detach:
        arguments = [
            *(f"--set={name}={value}" for name, value in session.flags.items()),
            f"--kafka-port={stack_settings.kafka_port}",
            f"--zookeeper-port={stack_settings.zookeeper_port}",
            f"--registry-port={stack_settings.registry_port}",
            *(["--no-node"] if no_node else []),
        ]
        start_detached(arguments, session.project, StepPrinter(session.printer), session.clock)
        _show(session, stack_settings, node=not no_node, end=down_command(session.project))
        return
    with StartupReporter(tell_fd, StepPrinter(session.printer)) as teller:
        _run(session, stack_settings, teller, node=not no_node)


def _refuse_secured(settings: Settings) -> None:
    """Reject access settings: the servers of a stack have no authentication."""
    for setting in SETTINGS:
        value = str(getattr(settings, setting.field))
        if setting.is_access and value != setting.default:
            raise RefusedError(
                f"`up` starts servers without authentication, and {setting.name} is set",
                place="settings",
                hint=f"leave {setting.name} out for them; `medusa node start` runs a node on "
                "servers that others run.",
            )


def _refuse_shared_ports(stack_settings: StackSettings) -> None:
    ports = (
        ("Kafka", stack_settings.kafka_port),
        ("ZooKeeper", stack_settings.zookeeper_port),
        ("the schema registry", stack_settings.registry_port),
    )
    for (one, port), (other, same) in combinations(ports, 2):
        if port == same:
            raise RefusedError(
                f"{one} and {other} cannot both have port {port}",
                hint="give each of them its own; `medusa up --help` names the options.",
            )


def _require_data_folder(project: Project) -> None:
    """Reject the default data folder outside of a project: it would be in the current folder.

    Raises:
        RefusedError: there is no project, and the data folder is not set.
    """
    if project.file is None and project.source("data") == "default":
        raise RefusedError(
            f"there is no project here: no {PROJECT_FILE} in this folder or above it",
            place=str(project.folder),
            hint="`medusa init` writes an example, `medusa init blank` an empty one. For a topic "
            "of your own: `medusa up --detach --data .medusa`, let your producer write, then "
            "`medusa init --topic TOPIC`.",
        )


def down_command(project: Project) -> str:
    """Command that stops the stack of this project's data folder."""
    words = ["medusa", "down"]
    if project.source("data") == FLAG:
        words += ["--data", str(project.data)]
    return shlex.join(words)


def _run(
    session: Session, stack_settings: StackSettings, teller: StartupReporter, *, node: bool
) -> None:
    """Run the stack until SIGTERM (`medusa down`) or Ctrl-C."""
    archive = partial(
        ensure_archive, stack_settings.cache, program=ARCHIVE_PROGRAM, progress=teller.step
    )
    stack = EmbeddedStack(
        stack_settings,
        start_registry,
        teller.step,
        prepare=archive if node else None,
        clock=session.clock,
    )
    with _sigterm_interrupts() as terminated:
        try:
            supervisor = _supervisor(stack, session) if node else None
            stack.start(partial(_start_node, supervisor, session) if supervisor else None)
            if supervisor is not None:
                teller.step(Step("starting the node"))
                _await_node(stack, session)
            _show(session, stack_settings, node=node)
            teller.ready()
            _supervise(stack, supervisor, session)
        except KeyboardInterrupt:
            teller.step(STOPPING)
            if not terminated.is_set():
                raise
        finally:
            stack.stop()


def _supervise(stack: EmbeddedStack, supervisor: Supervisor | None, session: Session) -> NoReturn:
    """Supervision loop: a server that ends is an error, a node that ends is restarted."""
    while True:
        _check_servers(stack.servers)
        if supervisor is not None:
            supervisor.check(session.clock.monotonic_s())
        stack.forget_ended()
        session.clock.sleep(_WATCH_S)


def _check_servers(servers: tuple[Child, ...]) -> None:
    for child in servers:
        if not child.running:
            raise child.failure(f"it ended by itself with exit code {child.exit_code}")


def _supervisor(stack: EmbeddedStack, session: Session) -> Supervisor:
    """Supervisor that starts and restarts the node as a child process of the stack."""
    ready_file = _ready_file(session)
    ready_file.unlink(missing_ok=True)
    spec = _node_spec(session, stack.settings, ready_file)
    return Supervisor(lambda: stack.add_child(spec), spec.name, session.printer.note)


def _start_node(supervisor: Supervisor, session: Session) -> None:
    """Start the node while the servers start: most of its start time is its own JVM's.

    Raises:
        RefusedError: the node runs already. The child process would end, with the reason in a log.
    """
    with only_node(session.project.data, session.settings.node):
        pass
    supervisor.begin(session.clock.monotonic_s())


def _await_node(stack: EmbeddedStack, session: Session) -> None:
    """Wait until the node is ready to claim fragments."""
    deadline = Deadline.after(session.clock, _NODE_READY_WITHIN_S, "starting the node")
    while not _ready_file(session).exists():
        stack.check()
        log = session.project.logs / f"node-{session.settings.node}.log"
        deadline.check(f"its log is {log}.")
        session.clock.sleep(_POLL_S)


def _ready_file(session: Session) -> Path:
    return session.project.data / "node-ready"


def _node_spec(session: Session, stack_settings: StackSettings, ready_file: Path) -> ChildSpec:
    """Process of the node; its flags contain the addresses of the stack."""
    settings, logs = session.settings, session.project.logs
    flags = {**session.flags, "data": settings.data, **stack_addresses(stack_settings)}
    return ChildSpec(
        name=f"node {settings.node}",
        command=medusa_command(
            "node",
            "start",
            f"--ready-file={ready_file}",
            f"--servers-within={_NODE_READY_WITHIN_S:g}",
            *(f"--set={name}={value}" for name, value in sorted(flags.items())),
        ),
        output=logs / f"{settings.node}.out",
        folder=session.project.folder,
        logs=(logs / f"node-{settings.node}.log",),
        grace_s=_NODE_ENDS_WITHIN_S,
    )


@contextmanager
def _sigterm_interrupts() -> Iterator[threading.Event]:
    """Raise KeyboardInterrupt at the first SIGTERM; the event is set if that happened."""
    terminated = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        if not terminated.is_set():
            terminated.set()
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield terminated
    finally:
        signal.signal(signal.SIGTERM, before)


def _show(
    session: Session, stack_settings: StackSettings, *, node: bool, end: str = "Ctrl-C"
) -> None:
    addresses = stack_addresses(stack_settings)
    logs = str(session.project.logs)
    lines = [
        "Medusa is up.",
        f"  Kafka            {addresses['kafka.bootstrap_servers']}",
        f"  ZooKeeper        {addresses['zookeeper.connect']}",
        f"  Schema registry  {addresses['registry.url']}",
        f"  Node             {session.settings.node if node else 'none'}",
        f"  Data             {session.settings.data}",
        f"  Logs             {logs}",
        f"  To end it        {end}",
        *other_programs(addresses, os.environ),
    ]
    session.printer.show(
        {**addresses, "node": session.settings.node if node else None, "logs": logs},
        "\n".join(lines),
    )


def other_programs(addresses: Mapping[str, str], environment: Mapping[str, str]) -> list[str]:
    """Shell exports for other programs, such as producer.py, unless these find the addresses."""
    required = [s for s in SETTINGS if s.name in {"kafka.bootstrap_servers", "registry.url"}]
    if all(addresses[s.name] == environment.get(s.environment, s.default) for s in required):
        return []
    words = " ".join(f"{s.environment}={addresses[s.name]}" for s in required)
    return ["Other programs, producer.py for one, need the addresses:", f"  export {words}"]


def stack_addresses(stack_settings: StackSettings) -> dict[str, str]:
    """Address settings of the stack."""
    return {
        "kafka.bootstrap_servers": stack_settings.kafka_bootstrap_servers,
        "zookeeper.connect": stack_settings.zookeeper_connect,
        "registry.url": stack_settings.registry_url,
    }
