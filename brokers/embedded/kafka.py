"""Embedded Kafka: one broker on loopback that is its own controller (KRaft)."""

import base64
import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from brokers.embedded.jars import kafka_classpath
from brokers.embedded.processes import Child, ChildSpec, start_child
from brokers.embedded.servers import (
    LOOPBACK,
    JavaServer,
    Place,
    is_free,
    start_server,
    wait_until_ready,
    write_file,
)
from brokers.kafka.admin import KafkaAdmin
from brokers.ports import free_port
from pipeline.clock import Clock
from pipeline.errors import BrokenInvariantError, EnvironmentProblem

HEAP_MB = 512
"""Enough for the rates of the benchmarks; the whole demo stays below 3 GiB."""
IDENTITY_FORMAT = 1
_FORMAT_WITHIN_S = 60.0

_CONFIGURATION = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller_port}
listeners={listeners},CONTROLLER://{host}:{controller_port}
advertised.listeners={advertised}
listener.security.protocol.map={protocols},CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs=data
auto.create.topics.enable=false
num.partitions=1
# One broker can hold one replica.
default.replication.factor=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
# Few partitions of its own: each costs files and time at every start.
offsets.topic.num.partitions=4
transaction.state.log.num.partitions=4
share.coordinator.state.topic.num.partitions=1
# A group's first member need not wait for others.
group.initial.rebalance.delay.ms=0
# The default of 128 MB is a quarter of the heap.
log.cleaner.dedupe.buffer.size=16777216
"""


@dataclass(frozen=True, slots=True)
class Listener:
    """A port on loopback, and the one that the broker advertises to clients there.

    They differ if there is a relay between the broker and these clients.
    """

    name: str
    port: int
    advertised_port: int


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of a broker's data folder, stored in its parent folder.

    `formatted` is true once the storage tool has succeeded; after an interrupted start the folder
    is formatted again, with the same id.
    """

    cluster_id: str
    controller_port: int
    formatted: bool
    format: int = IDENTITY_FORMAT


def start_kafka(
    place: Place, port: int, cache: Path, further: Sequence[Listener] = ()
) -> tuple[Child, Identity]:
    """Start the broker, after formatting its folder if it is new; `kafka_ready` waits for it.

    Args:
        place: its folder.
        port: of its clients.
        cache: of the jars.
        further: listeners of other clients.
    """
    folder = place.data / "kafka"
    class_path = kafka_classpath(cache)
    identity = _identity(folder)
    listeners = (Listener("PLAINTEXT", port, port), *further)
    text = configuration(listeners, identity.controller_port)
    write_file(folder / "server.properties", text)
    if not identity.formatted:
        _format(place, identity, class_path)
        identity = replace(identity, formatted=True)
        _write_identity(folder, identity)
    server = JavaServer(
        name="kafka",
        main=("kafka.Kafka", "server.properties"),
        heap_mb=HEAP_MB,
        class_path=class_path,
    )
    return start_server(place, server), identity


def configuration(listeners: Sequence[Listener], controller_port: int) -> str:
    """The broker's properties."""
    return _CONFIGURATION.format(
        host=LOOPBACK,
        listeners=",".join(f"{one.name}://{LOOPBACK}:{one.port}" for one in listeners),
        advertised=",".join(f"{one.name}://{LOOPBACK}:{one.advertised_port}" for one in listeners),
        protocols=",".join(f"{one.name}:PLAINTEXT" for one in listeners),
        controller_port=controller_port,
    )


def kafka_ready(child: Child, port: int, identity: Identity, clock: Clock) -> None:
    """Wait until the broker answers with its cluster id.

    Raises:
        EnvironmentProblem: it failed to start.
    """

    def answers(within_s: float) -> None:
        found = KafkaAdmin(f"{LOOPBACK}:{port}", within_s).cluster_id()
        if found != identity.cluster_id:
            raise EnvironmentProblem(
                f"cluster {found} answers on port {port}, not {identity.cluster_id}",
                place="kafka",
                hint="the folder kafka in the data folder was changed; restore it or remove it",
            )

    wait_until_ready(child, port, answers, clock)


def _identity(folder: Path) -> Identity:
    """Read the folder's identity, or create one; replaces a controller port that is not free."""
    try:
        stored = json.loads((folder / "identity.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        identity = Identity(_new_cluster_id(), free_port(), formatted=False)
        _write_identity(folder, identity)
        return identity
    except OSError as error:
        raise EnvironmentProblem(
            f"the data folder cannot be read: {error.strerror}", place=str(folder)
        ) from error
    if stored.get("format") != IDENTITY_FORMAT:
        raise BrokenInvariantError(
            f"identity.json has format {stored.get('format')}, not {IDENTITY_FORMAT}",
            place=str(folder),
            hint="another version of medusa made this folder",
        )
    identity = Identity(**stored)
    if is_free(identity.controller_port):
        return identity
    # Only this broker uses the controller's port, so it may change.
    identity = replace(identity, controller_port=free_port())
    _write_identity(folder, identity)
    return identity


def _write_identity(folder: Path, identity: Identity) -> None:
    write_file(folder / "identity.json", json.dumps(asdict(identity), indent=1))


def _format(place: Place, identity: Identity, class_path: str) -> None:
    """Format a new data folder with Kafka's own storage tool."""
    command = (
        str(place.java.executable),
        # The process is short: the second compiler would cost more time than it saves.
        *("-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", class_path),
        *("kafka.tools.StorageTool", "format", "--ignore-formatted"),
        *("-t", identity.cluster_id, "-c", "server.properties"),
    )
    output = place.logs / "kafka-format.out"
    spec = ChildSpec("kafka storage tool", command, output, place.data / "kafka")
    child = start_child(spec, pass_fds=(place.lock,))
    try:
        ends_at = time.monotonic() + _FORMAT_WITHIN_S
        while child.running and time.monotonic() < ends_at:
            time.sleep(0.02)
    finally:
        child.stop()
    if child.exit_code:
        raise child.failure(f"it ended with exit code {child.exit_code}")


def _new_cluster_id() -> str:
    """16 random bytes in Kafka's format of ids; never with a `-` first, which starts an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text
