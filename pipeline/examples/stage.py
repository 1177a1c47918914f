"""Environment of an example's run: a project in a temporary folder, a stack, a node, the producer.

Every process is started through the command line or, the producer, as a user would start it, and
runs under a guard process: none outlives this process, however it ends.
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from brokers.embedded.control import running_stack
from brokers.embedded.processes import Child, ChildSpec, start_child
from brokers.embedded.stack import StackSettings
from brokers.kafka import held_feed
from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.reader import TopicReader
from brokers.ports import free_port
from brokers.zookeeper import ZooKeeperStore
from pipeline.catalog.catalog import Catalog
from pipeline.clock import Clock, Deadline
from pipeline.errors import EnvironmentProblem, UnavailableError
from pipeline.examples.cut import PARTITION, Cut, CutKind
from pipeline.examples.decoding import Decoding
from pipeline.examples.example import DOCUMENT, PRODUCER, Example
from pipeline.examples.lines import HeldFeed, Line, SuspendedBroker
from pipeline.ids import FragmentId, NodeId, TopicName
from pipeline.names import Znodes
from pipeline.reader.reader import Connected
from pipeline.reader.reader import Reader as Results
from pipeline.reader.results import Handler
from schemas.client import RegistryClient

UP_WITHIN_S = 180.0
COMMAND_WITHIN_S = 120.0
SECOND = NodeId("node2")
BROKER = "kafka"
"""The broker among the members of a stack."""
HELD = "cut"
"""The file in the project's folder: while it exists, records are kept back."""
ANSWERS_WITHIN_S = 15.0
UP_ENDS_WITHIN_S = 45.0
"""It stops a node with its lanes, a broker and ZooKeeper, one after the other."""
_PRODUCER_ENDS_WITHIN_S = 5.0
_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Place:
    """Location of a run: its folder, its ports on loopback, and the cache of jars."""

    folder: Path
    stack: StackSettings

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings of every command, which override those of the user's own project."""
        return {
            "cache": str(self.stack.cache),
            "checkpoints": str(self.stack.data / "checkpoints"),
            "data": str(self.stack.data),
            "kafka.bootstrap_servers": self.stack.kafka_bootstrap_servers,
            "registry.url": self.stack.registry_url,
            "zookeeper.connect": self.stack.zookeeper_connect,
        }

    @property
    def logs(self) -> Path:
        """The folder of all logs."""
        return self.stack.data / "logs"


@dataclass(frozen=True, slots=True)
class Feed:
    """Arguments of the producer: duration, random seed, and others.

    Args:
        seconds: how long it sends.
        seed: of the made-up input.
        arguments: others.
        cut: what is kept back of its records while the file `HELD` exists; None: nothing.
    """

    seconds: float
    seed: int
    arguments: tuple[str, ...] = ()
    cut: CutKind | None = None


def fed(seconds: float, seed: int, arguments: tuple[str, ...], cut: Cut | None) -> Feed:
    """The arguments of a producer for a run of so many seconds, and those of the cut besides."""
    if cut is None:
        return Feed(seconds, seed, arguments)
    return Feed(seconds + cut.seconds, seed, arguments, cut.kind)


def choose_place(folder: Path, cache: Path) -> Place:
    """A place in a folder, with three ports that are free now."""
    kafka, zookeeper, registry = free_port(), free_port(), free_port()
    return Place(folder, StackSettings(folder / ".medusa", cache, kafka, zookeeper, registry))


def write_project(place: Place, example: Example, files: Mapping[str, bytes]) -> None:
    """Write an example's project, with its document adapted to a short run.

    Args:
        place: location of the run.
        example: the example.
        files: the project as `medusa init` writes it, by relative path.

    Raises:
        EnvironmentProblem: the folder cannot be written.
        BrokenInvariantError: the document is not the one that the example adapts.
    """
    try:
        for name, content in files.items():
            path = place.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        document = place.folder / DOCUMENT
        document.write_text(example.adapted(document.read_text("utf-8")), encoding="utf-8")
    except OSError as error:
        raise EnvironmentProblem(
            f"the project cannot be written: {error.strerror}",
            place=str(place.folder),
            hint="choose a folder for temporary files with TMPDIR.",
        ) from error


class Stage:
    """The running stack and its clients. A context manager: its exit ends all processes.

    Args:
        place: location of the project.
        medusa: returns the command line of one call of `medusa`.
        clock: for deadlines.
    """

    def __init__(self, place: Place, medusa: Callable[..., tuple[str, ...]], clock: Clock) -> None:
        self.place = place
        self._medusa = medusa
        self._clock = clock
        self._undo = ExitStack()
        self._up: Child | None = None
        self._second: Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._undo.close()

    def up(self) -> Catalog:
        """Run `medusa up` until its node is in the catalog; returns the catalog.

        Raises:
            EnvironmentProblem: it ended, with its last output.
            RetryError: it took too long.
        """
        ports = self.place.stack
        spec = self._spec(
            "medusa up",
            "up",
            f"--kafka-port={ports.kafka_port}",
            f"--zookeeper-port={ports.zookeeper_port}",
            f"--registry-port={ports.registry_port}",
            grace_s=UP_ENDS_WITHIN_S,
        )
        self._up = self._start(spec)
        deadline = Deadline.after(self._clock, UP_WITHIN_S, "medusa up")
        catalog: Catalog | None = None
        while catalog is None or not catalog.nodes.all():
            self.check()
            deadline.check(f"logs are in {self.place.logs}.")
            self._clock.sleep(_POLL_S)
            control = running_stack(ports.data)
            if catalog is None and control and any("node" in m.name for m in control.members):
                catalog = self._catalog()
        return catalog

    def line(self, cut: CutKind) -> Line:
        """What a cut closes; it is open at the end.

        Raises:
            EnvironmentProblem: the broker of the stack is not known.
        """
        if cut is not CutKind.BROKER:
            return HeldFeed(self.place.folder / HELD)
        control = running_stack(self.place.stack.data)
        pids = [one.pid for one in control.members if one.name == BROKER] if control else []
        if not pids:
            raise EnvironmentProblem("no broker runs here", place=str(self.place.stack.data))
        broker = SuspendedBroker(pids[0], self.topics().topic_names, self._clock)
        self._undo.callback(broker.go_on)
        return broker

    def second_node(self, catalog: Catalog) -> None:
        """Run a second node, with checkpoints of its own, until it is in the catalog.

        Raises:
            EnvironmentProblem: it ended, with its last output.
            RetryError: it took too long.
        """
        node = self._start(
            self._spec(
                f"medusa node start {SECOND}",
                "node",
                "start",
                grace_s=UP_ENDS_WITHIN_S,
                node=SECOND,
                checkpoints=str(self.place.stack.data / f"checkpoints-{SECOND}"),
            )
        )
        self._second = node
        deadline = Deadline.after(self._clock, UP_WITHIN_S, f"starting {SECOND}")
        while SECOND not in {one.node for one in catalog.nodes.all()}:
            self.check()
            if not node.running:
                raise node.failure(f"it ended with exit code {node.exit_code}")
            deadline.check(f"logs are in {self.place.logs}.")
            self._clock.sleep(_POLL_S)

    def kill_second(self) -> None:
        """End the second node by `kill -9`, its Java process included."""
        if self._second is not None and self._second.running:
            with suppress(ProcessLookupError):
                os.killpg(self._second.pid, signal.SIGKILL)

    def move(self, fragment: FragmentId, to: NodeId) -> Child:
        """Start `medusa move` of a fragment."""
        spec = self._spec("medusa move", "move", str(fragment), f"--to={to}", grace_s=5.0)
        return self._start(spec)

    def await_end(self, command: Child, what: str) -> None:
        """Wait for the end of a command.

        Raises:
            EnvironmentProblem: it failed, with its last output.
            RetryError: it took too long.
        """
        deadline = Deadline.after(self._clock, COMMAND_WITHIN_S, what)
        while command.running:
            self.check()
            deadline.check(f"logs are in {self.place.logs}.")
            self._clock.sleep(_POLL_S)
        if command.exit_code != 0:
            raise command.failure(f"it ended with exit code {command.exit_code}")

    def _catalog(self) -> Catalog | None:
        """The catalog; None: ZooKeeper does not answer yet, since the node is starting."""
        try:
            store = ZooKeeperStore.connect(self.place.stack.zookeeper_connect, ANSWERS_WITHIN_S)
        except UnavailableError:
            return None
        self._undo.callback(store.close)
        # The connect string already contains the chroot.
        return Catalog(store, Znodes(""))

    def check(self) -> None:
        """Raise if `medusa up` has ended by itself; it ends when one of its servers does.

        Raises:
            EnvironmentProblem: with its last output.
        """
        if self._up is not None and not self._up.running:
            raise self._up.failure(f"it ended with exit code {self._up.exit_code}")

    def deploy(self) -> None:
        """Run `medusa deploy`.

        Raises:
            EnvironmentProblem: it failed, with its last output.
            RetryError: it took too long.
        """
        spec = self._spec("medusa deploy", "deploy", f"--file={DOCUMENT}", grace_s=5.0)
        self.await_end(self._start(spec), "medusa deploy")

    def feed(self, feed: Feed) -> Child:
        """Start the project's own producer."""
        stack = self.place.stack
        command = (
            sys.executable,
            *_held(feed.cut),
            PRODUCER,
            f"--bootstrap-servers={stack.kafka_bootstrap_servers}",
            f"--registry={stack.registry_url}",
            f"--seconds={feed.seconds:g}",
            f"--seed={feed.seed}",
            *feed.arguments,
        )
        return self._start(
            ChildSpec(
                PRODUCER,
                command,
                self.place.logs / "producer.out",
                self.place.folder,
                grace_s=_PRODUCER_ENDS_WITHIN_S,
            )
        )

    def topics(self) -> KafkaAdmin:
        """A client for the metadata of Kafka's topics."""
        return KafkaAdmin(self.place.stack.kafka_bootstrap_servers, ANSWERS_WITHIN_S, self._clock)

    def records(self) -> TopicReader:
        """A reader of topics of its own."""
        reader = TopicReader(self.place.stack.kafka_bootstrap_servers, ANSWERS_WITHIN_S)
        self._undo.callback(reader.close)
        return reader

    def results(self, topic: TopicName, handler: Handler) -> Results:
        """A reader of the results of an output, tentative ones included."""
        connected = Connected(self.topics(), self.records(), self._clock)
        return Results(connected, topic, handler)

    def decoding(self) -> Decoding:
        """Decodes values with the schemas of the registry."""
        registry = RegistryClient(self.place.stack.registry_url, ANSWERS_WITHIN_S)
        self._undo.callback(registry.close)
        return Decoding(registry.schema_of)

    def _spec(self, name: str, *arguments: str, grace_s: float, **others: str) -> ChildSpec:
        values = {**self.place.settings, **others}
        settings = tuple(f"--set={name}={value}" for name, value in values.items())
        log = self.place.logs / f"{name.replace(' ', '-')}.out"
        command = (*self._medusa(*arguments), *settings)
        return ChildSpec(name, command, log, self.place.folder, grace_s=grace_s)

    def _start(self, spec: ChildSpec) -> Child:
        child = start_child(spec)
        self._undo.callback(child.stop)
        return child


def _held(cut: CutKind | None) -> tuple[str, ...]:
    """The arguments of Python before the producer."""
    if cut is None or cut is CutKind.BROKER:
        return ()
    which = str(PARTITION) if cut is CutKind.PARTITION else held_feed.ALL
    return ("-P", "-m", held_feed.__name__, HELD, which)
