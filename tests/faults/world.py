"""Environment of a run: servers, the node that runs the networks, and their feeds."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import yaml

from brokers.embedded.stack import StackSettings
from brokers.kafka.admin import KafkaAdmin
from brokers.kafka_interface import Isolation
from brokers.records import KafkaRecord
from brokers.zookeeper import ZooKeeperStore
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.fragment_status import LaneState
from pipeline.deploy.documents import read_document
from pipeline.errors import ExitCode, MedusaError
from pipeline.ids import NetworkId, NetworkName, ParticipantId, TopicName
from pipeline.markers.codec import decode_marker
from pipeline.markers.commit_marker import CommitMarker
from pipeline.names import Znodes
from pipeline.planner import planner
from pipeline.planner.plan import Fragment, Plan
from pipeline.system_clock import SystemClock
from schemas import codec, wire
from schemas.client import RegistryClient
from tests.faults.complete import lacking_of
from tests.faults.history import Sent
from tests.faults.judge import Decode, History
from tests.faults.nodes import STORE, Node, node_settings
from tests.faults.observe import Observer, read_all, read_logs
from tests.faults.reads import Reads
from tests.faults.servers import Servers
from tests.faults.topics import topics_of

ANSWERS_WITHIN_S = 15.0
READY_WITHIN_S = 120.0
STABLE_WITHIN_S = 240.0
COMPLETE_WITHIN_S = 180.0
TRIES = 5
REMOVED_WITHIN_S = 40.0
COMMAND_WITHIN_S = 120.0
OWNER = ParticipantId("local")
_POLL_S = 0.05


class RunFailedError(Exception):
    """The networks did not reach a required state; contains the states and the last log lines."""


class Feed(Protocol):
    """Producer of a network's input; survives broker faults."""

    def start(self) -> None:
        """Start sending."""

    def hold(self) -> None:
        """Delay all records until `go_on`; none is skipped."""

    def go_on(self) -> None:
        """Send the delayed records, and continue."""

    def finish(self) -> int:
        """Deliver all, with closing records; returns the event time of the last results (ms)."""

    def stop(self) -> None:
        """Stop without errors. Idempotent."""


@dataclass(slots=True)
class Running:
    """One network that is fed and observed."""

    network: str
    plan: Plan
    feed: Feed
    observer: Observer

    def marker(self, fragment: Fragment) -> CommitMarker | None:
        """The newest observed commit marker of a fragment."""
        last = self.observer.last(fragment.names.markers)
        return None if last is None else _marker(last.record)

    def progress(self) -> object:
        """The read positions of its inputs, and its promises; changes with any progress."""
        found = [(f, marker) for f in self.plan.fragments if (marker := self.marker(f))]
        return [
            (
                marker.boundary_ms,
                [
                    offset
                    for at, offset in sorted(marker.end.items())
                    if at.topic in {source.topic for source in fragment.inputs}
                ],
            )
            for fragment, marker in found
        ]

    def wrote_since(self, fragment: Fragment, since_ms: int) -> bool:
        """Whether a fragment has written a batch after a moment (the broker's clock, ms).

        The copy of a marker that a new owner writes at its start is not a batch.
        """
        newer: CommitMarker | None = None
        for observed in reversed(self.observer.seen(fragment.names.markers)):
            marker = _marker(observed.record)
            if marker is None:
                continue
            if newer is not None and marker.end != newer.end:
                return True
            if observed.record.timestamp_ms < since_ms:
                return False
            newer = marker
        return False


def _marker(record: KafkaRecord) -> CommitMarker | None:
    if record.value is None:
        return None
    return decode_marker(record.value, f"topic {record.topic}, offset {record.offset}")


@dataclass
class World:
    """Servers and nodes that faults affect, and clients to observe them.

    `node` runs the networks; faults may replace it.
    """

    servers: Servers
    folder: Path
    catalog: Catalog
    admin: KafkaAdmin
    registry: RegistryClient
    node: Node
    networks: list[Running] = field(default_factory=list)
    others: list[Node] = field(default_factory=list)
    trimmed: set[TopicName] = field(default_factory=set)
    """Topics whose records were deleted after the observers had read them."""
    grown: Counter[TopicName] = field(default_factory=Counter)
    """How often partitions were added to topics."""
    restarts: int = 0
    """Number of restarts of the node after an exit without a kill."""
    _numbers: int = 0

    @property
    def stack(self) -> StackSettings:
        """Settings of the servers."""
        return self.servers.settings

    @property
    def store(self) -> Path:
        """The folder of the checkpoint store."""
        return self.folder / STORE

    # --- nodes --------------------------------------------------------------------------------

    def new_node(
        self, checkpoints: Path | None = None, further: Mapping[str, str] | None = None
    ) -> Node:
        """Create a further node, not started, with a separate checkpoint folder by default.

        Args:
            checkpoints: a shared folder.
            further: settings that replace the defaults.
        """
        self._numbers += 1
        name = f"node{self._numbers}"
        data = self.folder / name
        settings = {**node_settings(self.stack, self.folder), **(further or {})}
        node = Node(name, data, checkpoints or data / "checkpoints", settings)
        self.others.append(node)
        return node

    def restart(self) -> None:
        """Start the node, and wait until it is ready to claim fragments."""
        self.node.start()
        self.await_ready(self.node)

    def await_ready(self, node: Node) -> None:
        """Wait until a node is ready to claim fragments.

        Raises:
            RunFailedError: it ended, or took too long.
        """

        def up() -> bool:
            if not node.running:
                raise RunFailedError(f"{node.name} ended:\n{node.last_words()}")
            return node.ready

        self.wait(up, f"{node.name} is ready", READY_WITHIN_S)

    # --- networks -----------------------------------------------------------------------------

    def deploy(self, network: str, document: str, files: Mapping[str, str]) -> Plan:
        """Deploy a document with its files."""
        folder = self.folder / "documents" / network
        folder.mkdir(parents=True)
        for file, text in files.items():
            (folder / file).write_text(text)
        path = folder / "network.yaml"
        path.write_text(document)
        self.medusa("deploy", f"--file={path}", "--yes", "--no-wait")
        return planner.plan(read_document(path, lambda _: None).network, OWNER)

    def rely(
        self, reliability: str | Mapping[str, str], networks: Sequence[Running] | None = None
    ) -> None:
        """Deploy networks, all by default, with another reliability."""
        for running in self.networks if networks is None else networks:
            path = self.folder / "documents" / running.network / "network.yaml"
            text = path.read_text()
            document = yaml.load(text, yaml.BaseLoader)  # noqa: S506 - it makes texts alone
            document["reliability"] = reliability
            path.write_text(yaml.safe_dump(document, sort_keys=False))
            self.medusa("deploy", f"--file={path}", "--yes", "--no-wait")

    def run(self, network: str, plan: Plan, feed: Feed) -> Running:
        """Start to feed and to observe a deployed network."""
        topics = {topic for fragment in plan.fragments for topic in topics_of(fragment).all}
        described = self.admin.describe(topics)
        partitions = {topic: one.partitions for topic, one in described.items()}
        observer = Observer(self.stack.kafka_bootstrap_servers, partitions)
        running = Running(network, plan, feed, observer)
        self.networks.append(running)
        observer.start()
        feed.start()
        return running

    def remove(self, running: Running) -> None:
        """Destroy a network with its topics, as far as possible."""
        running.feed.stop()
        running.observer.stop()
        self.networks.remove(running)
        with suppress(RunFailedError):
            self.medusa("destroy", running.network, "--yes", f"--timeout={REMOVED_WITHIN_S:g}")

    def medusa(self, *arguments: str, fine: Collection[int] = (ExitCode.DONE,)) -> str:
        """Run one `medusa` command as a process; again if it asks for it, as when lanes start.

        Args:
            arguments: of the command.
            fine: its expected exit codes.

        Returns:
            Its output.

        Raises:
            RunFailedError: it failed, with its output, or it took too long.
        """
        tries = (self._run(*arguments) for _ in range(TRIES))
        done = next((one for one in tries if one.returncode != ExitCode.TRY_AGAIN), None)
        if done is None:
            raise RunFailedError(f"medusa {arguments[0]} wants to be tried again and again")
        if done.returncode not in fine:
            raise RunFailedError(f"medusa {arguments[0]}: {done.stdout}{done.stderr}")
        return done.stdout

    def _run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        settings = {**node_settings(self.stack, self.folder), "data": str(self.node.data)}
        command = [sys.executable, "-P", "-m", "pipeline.cli.main", *arguments]
        command += [f"--set={key}={value}" for key, value in settings.items()]
        try:
            return subprocess.run(
                command, capture_output=True, text=True, timeout=COMMAND_WITHIN_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise RunFailedError(f"medusa {arguments[0]}: {error}") from error

    # --- waiting ------------------------------------------------------------------------------

    def await_stable(self, since_ms: int) -> None:
        """Wait until every fragment has written a batch after a moment (wall time, ms).

        A node that has exited meanwhile is restarted, as by a supervisor.

        Raises:
            RunFailedError: a lane failed, or it took too long.
        """

        def all_wrote() -> bool:
            self.supervise()
            self._check_lanes(since_ms)
            return all(
                running.wrote_since(fragment, since_ms)
                for running in self.networks
                for fragment in running.plan.fragments
            )

        self.wait(all_wrote, "every fragment writes", STABLE_WITHIN_S)

    @contextmanager
    def silence(self) -> Iterator[None]:
        """No records are sent during the block."""
        feeds = [running.feed for running in self.networks]
        for feed in feeds:
            feed.hold()
        try:
            yield
        finally:
            for feed in feeds:
                feed.go_on()

    def await_complete(self, running: Running, until_ms: int) -> None:
        """Wait for all results up to an event time.

        Raises:
            RunFailedError: a lane failed, or there was no progress for too long.
        """
        since_ms = time.time_ns() // 1_000_000

        lacking: list[str] = []

        def complete() -> bool:
            self.supervise()
            self._check_lanes(since_ms)
            ends = self.admin.end_offsets(
                {source.topic for f in running.plan.fragments for source in f.inputs}
            )
            lacking[:] = [
                text
                for fragment in running.plan.fragments
                for text in lacking_of(fragment, running.marker(fragment), ends, until_ms)
            ]
            return not lacking

        what = f"all of {running.network} is computed"
        try:
            self.wait(complete, what, COMPLETE_WITHIN_S, running.progress)
        except RunFailedError as error:
            raise RunFailedError("\n".join((str(error), *lacking))) from error

    def supervise(self) -> None:
        """Restart the node if it has exited by itself."""
        if not self.node.running:
            self.restarts += 1
            self.restart()

    def wait(
        self,
        condition: Callable[[], bool],
        what: str,
        within_s: float,
        progress: Callable[[], object] = lambda: None,
    ) -> None:
        """Wait for a condition; requests to unavailable servers are retried.

        `progress`: each change of it restarts the timeout.

        Raises:
            RunFailedError: timeout.
        """
        ends_at, last = time.monotonic() + within_s, progress()
        trouble = ""
        while True:
            try:
                if condition():
                    return
                trouble = ""
            except MedusaError as error:
                trouble = f" ({error})"
            if (now := progress()) != last:
                ends_at, last = time.monotonic() + within_s, now
            if time.monotonic() > ends_at:
                raise RunFailedError(
                    f"{what}: not within {within_s:g} s{trouble}\n{self._states()}"
                    f"\n{self.node.last_words()}"
                )
            time.sleep(_POLL_S)

    def _check_lanes(self, since_ms: int) -> None:
        for running in self.networks:
            for status in self.catalog.statuses.of(NetworkId(OWNER, NetworkName(running.network))):
                reported_ms = status.reported_at_ms - self.node.ahead_ms
                if status.state is LaneState.FAILED and reported_ms >= since_ms:
                    name = f"{running.network}.{status.fragment}"
                    raise RunFailedError(f"{name} has failed: {status.last_error}")

    def _states(self) -> str:
        lines = []
        with suppress(MedusaError):
            for running in self.networks:
                for status in self.catalog.statuses.of(
                    NetworkId(OWNER, NetworkName(running.network))
                ):
                    name = f"{running.network}.{status.fragment}"
                    lines.append(f"  {name}: {status.state.value} {status.last_error or ''}")
        return "\n".join(lines)

    # --- history ------------------------------------------------------------------------------

    def history(self, running: Running, sent: tuple[Sent, ...]) -> History:
        """The history of a network, read again from the topics.

        Without a list of sent records (`sent` is empty) the input is not read.
        """
        redriven = self.admin.describe(f.names.redrive for f in running.plan.fragments).keys()
        fragments = tuple(topics_of(fragment, redriven) for fragment in running.plan.fragments)
        inputs = {t for f in fragments for t in f.reads} if sent else set()
        topics = tuple(sorted({t for f in fragments for t in f.all} | inputs))
        bootstrap = self.stack.kafka_bootstrap_servers
        running.observer.stop()
        reads = Reads(
            logs=read_logs(self.servers.kafka_logs, topics),
            committed=read_all(self.admin, bootstrap, topics, Isolation.COMMITTED),
            uncommitted=read_all(self.admin, bootstrap, topics, Isolation.UNCOMMITTED),
            observed=tuple(
                seen.record for f in fragments for t in f.all for seen in running.observer.seen(t)
            ),
            compacted=frozenset(
                {t for f in fragments for t in (f.boundaries, f.markers)} | self.trimmed
            ),
        )
        return History(sent, fragments, reads, self.grown)

    def decoder(self) -> Decode:
        """A decoder of outputs' values."""

        def fields(record: object) -> dict[str, object]:
            framed = wire.split(getattr(record, "value", None))
            if not isinstance(framed, wire.Framed):
                return {"undecodable": repr(record)}
            schema = self.registry.schema_of(framed.schema)
            if schema is None:
                return {"no schema": str(framed.schema)}
            found: dict[str, object] = codec.decode(schema, schema, framed.body)
            return found

        return fields


@contextmanager
def world(folder: Path, cache: Path) -> Iterator[World]:
    """A world in a folder; all its processes end with the block."""
    with ExitStack() as undo:
        servers = undo.enter_context(Servers(folder / "servers", cache, SystemClock()))
        store = ZooKeeperStore.connect(servers.settings.zookeeper_connect, ANSWERS_WITHIN_S)
        undo.callback(store.close)
        catalog = Catalog(store, Znodes(""))
        catalog.format.ensure(OWNER)
        registry = RegistryClient(servers.settings.registry_url, ANSWERS_WITHIN_S)
        undo.callback(registry.close)
        admin = KafkaAdmin(servers.settings.kafka_bootstrap_servers, ANSWERS_WITHIN_S)
        data = folder / "node0"
        (folder / STORE).mkdir()
        settings = node_settings(servers.settings, folder)
        node = Node("node0", data, data / "checkpoints", settings)
        made = World(servers, folder, catalog, admin, registry, node, others=[node])
        undo.callback(_end, made)
        yield made


def _end(made: World) -> None:
    for running in made.networks:
        running.feed.stop()
        running.observer.stop()
    for node in made.others:
        node.kill()


class Worlds:
    """A world for successive runs; a new one after a failed run, since the old may be unusable.

    Args:
        folder: of all worlds.
        cache: of the jars.
    """

    def __init__(self, folder: Path, cache: Path) -> None:
        self._folder = folder
        self._cache = cache
        self._count = 0
        self._undo = ExitStack()
        self._world: World | None = None

    def get(self) -> World:
        """A world without failed runs."""
        if self._world is None:
            self._count += 1
            place = self._folder / f"world{self._count}"
            place.mkdir()
            self._world = self._undo.enter_context(world(place, self._cache))
        return self._world

    def drop(self) -> None:
        """End the world."""
        self._world = None
        self._undo.close()
