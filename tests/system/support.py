"""Helpers of system tests: nodes on the embedded stack, deploys, records and status."""

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brokers.embedded.processes import Child, ChildSpec, start_child
from brokers.embedded.stack import StackSettings
from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.cluster import RemoteKafka
from brokers.kafka.producer import PlainProducer
from brokers.kafka.reader import TopicReader
from brokers.log_reader import LogReader
from brokers.records import KafkaRecord, NewTopicSpec
from brokers.zookeeper import ZooKeeperStore
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.clock import Deadline
from pipeline.deploy.apply import Comparison, Deployed, Servers, compare, deploy
from pipeline.deploy.documents import read_document
from pipeline.deploy.life import random_life
from pipeline.deploy.remove import destroy, doomed
from pipeline.errors import MedusaError
from pipeline.ids import (
    FragmentId,
    FragmentName,
    Millis,
    NetworkId,
    NetworkName,
    ParticipantId,
    TopicName,
)
from pipeline.lanes.marker_invariants import violations
from pipeline.markers.codec import decode_marker
from pipeline.markers.commit_marker import CommitMarker
from pipeline.names import FragmentNames, Znodes, checkpoint_folder
from pipeline.planner.state import NO_CHOICES, Choices
from pipeline.system_clock import SystemClock
from schemas import avro, codec, wire
from schemas.client import RegistryClient
from tests.conftest import WaitFor

TIMEOUT_S = 20.0
READY_WITHIN_S = 120.0
RUNNING_WITHIN_S = 120.0
OWNER = ParticipantId("local")


def network_id(name: str, owner: ParticipantId = OWNER) -> NetworkId:
    """A network of a participant."""
    return NetworkId(owner, NetworkName(name))


READING: Mapping[str, Any] = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "sensor", "type": "string"},
        {"name": "value", "type": "int"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}

WINDOWS = """
network: {name}
streams:
  readings:
    topic: {name}-in
    schema: reading.avsc
    event_time: at
    lateness: 1s
    idle_after: 1h
    partitions: 2
boxes:
  counts:
    aggregate: readings
    window: 10s
    by: [sensor]
    compute: {{n: count(*), total: sum(value)}}
outputs: {{counts: {{topic: {name}-out}}}}
"""


@dataclass
class Installation:
    """The stack's clients, a data folder, and nodes as child processes."""

    stack: StackSettings
    folder: Path
    catalog: Catalog
    admin: KafkaAdmin
    registry: RegistryClient
    producer: PlainProducer
    wait_for: WaitFor

    # --- nodes --------------------------------------------------------------------------------

    def start_node(self, name: str, further: Mapping[str, str] | None = None) -> Child:
        """Start a node process behind a guard, with further settings; returns at once."""
        ready = self.folder / f"{name}.ready"
        ready.unlink(missing_ok=True)
        settings = {
            "data": str(self.folder),
            "node": name,
            "kafka.bootstrap_servers": self.stack.kafka_bootstrap_servers,
            "zookeeper.connect": self.stack.zookeeper_connect,
            "registry.url": self.stack.registry_url,
            "cache": str(self.stack.cache),
            **(further or {}),
        }
        command = [sys.executable, "-P", "-m", "pipeline.cli.main", "node", "start"]
        command += [f"--ready-file={ready}"]
        command += [f"--set={key}={value}" for key, value in settings.items()]
        spec = ChildSpec(name, tuple(command), self.folder / f"{name}.out", Path.cwd())
        return start_child(spec)

    def await_node(self, name: str, process: Child) -> None:
        """Wait until a node is ready to claim fragments."""
        ready = self.folder / f"{name}.ready"

        def up() -> bool:
            assert process.running, (self.folder / f"{name}.out").read_text()[-4000:]
            return ready.exists()

        self.wait_for(up, f"node {name} is up", within_s=READY_WITHIN_S)

    @contextmanager
    def node(self, name: str, further: Mapping[str, str] | None = None) -> Iterator[Child]:
        """A running node; killed with all it started when the block is left."""
        process = self.start_node(name, further)
        try:
            self.await_node(name, process)
            yield process
        finally:
            kill(process)

    # --- networks -----------------------------------------------------------------------------

    @property
    def servers(self) -> Servers:
        """Server connections that a deploy needs."""
        log = LogReader(RemoteKafka(self.stack.kafka_bootstrap_servers), TIMEOUT_S)
        return Servers(self.catalog, self.admin, self.registry, SystemClock(), log, random_life)

    def deploy(
        self,
        document: str,
        schemas: Mapping[str, Mapping[str, Any]],
        choices: Choices = NO_CHOICES,
        owner: ParticipantId = OWNER,
    ) -> Deployed:
        """Deploy a document as `medusa deploy` does; schemas are files in the same folder."""
        found = self.compared(document, schemas, choices, owner)
        return deploy(found, self.servers, lambda _: None)

    def compared(
        self,
        document: str,
        schemas: Mapping[str, Mapping[str, Any]],
        choices: Choices = NO_CHOICES,
        owner: ParticipantId = OWNER,
    ) -> Comparison:
        """Compare a document with the deployed network, as `medusa plan` does."""
        folder = self.folder / "documents"
        folder.mkdir(exist_ok=True)
        for file, schema in schemas.items():
            (folder / file).write_text(json.dumps(schema))
        path = folder / "network.yaml"
        path.write_text(document)
        return compare(read_document(path, lambda _: None), owner, self.servers, choices)

    def create_topic(self, topic: str, partitions: int) -> None:
        """Create a topic as an external client does."""
        self.admin.create_topics((NewTopicSpec(TopicName(topic), partitions, 1),))

    def marker(self, network: str, fragment: str) -> CommitMarker:
        """The last commit marker of a fragment."""
        names = FragmentNames(FragmentId(network_id(network), FragmentName(fragment)))
        record = self.servers.log.last(names.markers)
        assert record is not None
        assert record.value is not None
        return decode_marker(record.value, names.markers)

    def destroy(
        self, network: str, *, owner: ParticipantId = OWNER, elsewhere: bool = False
    ) -> None:
        """Destroy a network as `medusa destroy` does.

        `elsewhere`: on another machine, which does not see the checkpoints of this one.
        """
        servers = self.servers
        deadline = Deadline.after(servers.clock, RUNNING_WITHIN_S, f"stopping {network}")
        destroy(doomed(network_id(network, owner), servers), servers, deadline, lambda _: None)
        if not elsewhere:
            shutil.rmtree(self.checkpoints(network, owner), ignore_errors=True)

    def checkpoints(self, network: str, owner: ParticipantId = OWNER) -> Path:
        """The checkpoints of a network on the nodes of this machine."""
        return self.folder / "checkpoints" / checkpoint_folder(network_id(network, owner))

    def status(
        self, network: str, fragment: str, owner: ParticipantId = OWNER
    ) -> FragmentStatus | None:
        """The last reported status of a fragment."""
        return self.catalog.statuses.get(network_id(network, owner), FragmentName(fragment))

    def await_state(
        self,
        network: str,
        fragment: str,
        state: LaneState,
        *,
        epoch: int = 1,
        owner: ParticipantId = OWNER,
    ) -> FragmentStatus:
        """Wait until a fragment is in a state, in this epoch or a later one."""
        found: list[FragmentStatus] = []

        def there() -> bool:
            status = self.status(network, fragment, owner)
            if status is None or status.state is not state or status.epoch < epoch:
                return False
            found.append(status)
            return True

        self.wait_for(there, f"{network}.{fragment} is {state.value}", within_s=RUNNING_WITHIN_S)
        return found[0]

    # --- records ------------------------------------------------------------------------------

    def send(self, topic: str, value: bytes | None, **record: Any) -> None:
        """Send one record with exactly this value."""
        self.producer.send(TopicName(topic), record.pop("key", None), value, **record)

    def encoded(self, subject: str, schema: Mapping[str, Any], value: Mapping[str, Any]) -> bytes:
        """A value in the wire format, its schema registered as a producer would."""
        text = json.dumps(schema)
        schema_id = self.registry.register(subject, text)
        return wire.join(schema_id, codec.encode(avro.parse(text), dict(value)))

    def records(self, topic: str) -> list[KafkaRecord]:
        """All committed records of a topic."""
        name = TopicName(topic)
        ends = self.admin.end_offsets((name,))
        with TopicReader(self.stack.kafka_bootstrap_servers, TIMEOUT_S) as reader:
            reader.assign(self.admin.start_offsets((name,)))
            return list(reader.read_to(ends))

    def has_more_than(self, topic: str, count: int) -> bool:
        """Whether a topic has more than `count` committed records."""
        return len(self.records(topic)) > count

    def decoded(self, topic: str) -> list[Any]:
        """All committed values of a topic, decoded with the schema each was written with."""
        return self.decode([record.value for record in self.records(topic)])

    def decode(self, values: Sequence[bytes | None]) -> list[Any]:
        """Values, decoded with the schema that each was written with."""
        return [self._decode(value) for value in values]

    def _decode(self, value: bytes | None) -> Any:
        framed = wire.split(value)
        assert isinstance(framed, wire.Framed), value
        schema = self.registry.schema_of(framed.schema)
        assert schema is not None
        return codec.decode(schema, schema, framed.body)


@contextmanager
def installation(stack: StackSettings, folder: Path, wait_for: WaitFor) -> Iterator[Installation]:
    """Clients of a running stack."""
    store = ZooKeeperStore.connect(stack.zookeeper_connect, TIMEOUT_S)
    registry = RegistryClient(stack.registry_url, TIMEOUT_S)
    producer = PlainProducer(stack.kafka_bootstrap_servers, TIMEOUT_S)
    catalog = Catalog(store, Znodes(""))
    catalog.format.ensure(OWNER)
    try:
        admin = KafkaAdmin(stack.kafka_bootstrap_servers, TIMEOUT_S)
        found = Installation(stack, folder, catalog, admin, registry, producer, wait_for)
        yield found
        check_marker_topics(found)
    finally:
        producer.close()
        registry.close()
        store.close()


def check_marker_topics(medusa: Installation) -> None:
    """Compare the commit markers of all fragments that tests have left behind."""
    for topic in medusa.admin.topic_names():
        if topic.endswith(".markers"):
            values = [record.value for record in medusa.records(topic)]
            markers = [decode_marker(value, topic) for value in values if value is not None]
            assert violations(markers, complete=False) == (), topic


def seen_last(medusa: Installation, lines: int = 40) -> str:
    """Diagnostics of a failed test: each fragment's status, the last lines of each node's log."""
    words: list[str] = []
    try:
        for network, _ in medusa.catalog.versions.deployed():
            words += [str(status) for status in medusa.catalog.statuses.of(network.network)]
    except MedusaError as error:
        words.append(f"no statuses: {error}")
    for log in sorted((medusa.folder / "logs").glob("node-*.log")):
        words += [f"--- {log}", *log.read_text(errors="replace").splitlines()[-lines:]]
    return "\n".join(words)


def kill(process: Child) -> None:
    """End a node with kill -9, Java included, and wait until it has exited."""
    if process.running:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.stop()


def readings(count: int, sensors: Sequence[str] = ("a", "b", "c")) -> list[dict[str, Any]]:
    """Readings one millisecond apart, ending now."""
    now = int(time.time() * 1000)
    return [
        {"sensor": sensors[i % len(sensors)], "value": i, "at": Millis(now - count + i)}
        for i in range(count)
    ]
