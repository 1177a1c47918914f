"""Format versions: an older program must not change data of a newer one.

The newer version is simulated: the tests write its data by hand, in format 2.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from brokers.embedded.processes import Child
from brokers.kafka_interface import Isolation
from brokers.versioned_store import Create, Delete, Set
from brokers.zookeeper import ZooKeeperStore
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.codec import encode
from pipeline.catalog.fragment_status import LaneState
from pipeline.catalog.records import FormatRecord
from pipeline.errors import NewerFormatError, RefusedError
from pipeline.ids import FragmentId, FragmentName, NodeId, TopicName
from pipeline.names import FragmentNames, Znodes, events_topic, heartbeats_topic
from tests.system.support import OWNER, READING, TIMEOUT_S, WINDOWS, Installation, kill, network_id

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

ZNODES = Znodes("")
COUNTS = FragmentName("counts")
WITHIN_S = 90.0
BASE = int(time.time()) // 10 * 10_000 - 1_000_000
NODE = "node_formats"


@pytest.fixture
def store(medusa: Installation) -> Iterator[ZooKeeperStore]:
    """A separate session on the catalog."""
    found = ZooKeeperStore.connect(medusa.stack.zookeeper_connect, TIMEOUT_S)
    yield found
    found.close()


def names(name: str) -> FragmentNames:
    """The names of the network's only fragment."""
    return FragmentNames(FragmentId(network_id(name), COUNTS))


def send(medusa: Installation, name: str, values: range) -> None:
    """Readings a quarter of a second apart, of two sensors."""
    for value in values:
        reading = {"sensor": "ab"[value % 2], "value": value, "at": BASE + value * 250}
        data = medusa.encoded(f"{name}-in-value", READING, reading)
        medusa.send(f"{name}-in", data, partition=value % 2)
    medusa.producer.flush(10)


def has_read(medusa: Installation, name: str, records: int) -> bool:
    """Whether so many records are processed."""
    status = medusa.status(name, "counts")
    return status is not None and status.records_in >= records


def znodes_below(store: ZooKeeperStore, path: str = "") -> dict[str, tuple[bytes, int]]:
    """Values and versions of all znodes below a path."""
    found: dict[str, tuple[bytes, int]] = {}
    for name in store.children(path or "/"):
        child = f"{path}/{name}"
        there = store.get(child)
        if there is not None:
            found[child] = (there.value, there.version)
            found.update(znodes_below(store, child))
    return found


def statuses(medusa: Installation) -> list[str]:
    """The status znodes, which nodes write also for networks of other tests."""
    return [
        ZNODES.status(record.network, fragment.fragment)
        for record in medusa.catalog.networks.of(OWNER)
        for fragment in medusa.catalog.fragments.of(record.network)
    ]


def files_below(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Contents and modification time of each file in a folder."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@dataclass(frozen=True, slots=True)
class Everything:
    """Snapshot of all shared data: the catalog, the ends of topics, checkpoint files.

    Without the event log, which has an entry of each refusal.
    """

    znodes: Mapping[str, tuple[bytes, int]]
    topics: Mapping[TopicName, Mapping[int, int]]
    files: Mapping[str, tuple[bytes, int]]

    def without(self, *prefixes: str) -> "Everything":
        """The snapshot without some znodes."""
        kept = {p: found for p, found in self.znodes.items() if not p.startswith(prefixes)}
        return Everything(kept, self.topics, self.files)


def everything(medusa: Installation, store: ZooKeeperStore) -> Everything:
    """The current snapshot."""
    ends = medusa.admin.end_offsets(medusa.admin.topic_names(), Isolation.UNCOMMITTED)
    of_nodes = {events_topic(OWNER), heartbeats_topic(OWNER)}
    return Everything(
        znodes_below(store),
        {topic: dict(found) for topic, found in ends.items() if topic not in of_nodes},
        files_below(medusa.folder / "checkpoints"),
    )


def await_no_node(medusa: Installation, store: ZooKeeperStore) -> None:
    """Wait until the ZooKeeper sessions of killed nodes have expired."""
    medusa.wait_for(
        lambda: not store.children(ZNODES.nodes(OWNER)), "no node is up", within_s=WITHIN_S
    )


def ended(medusa: Installation, process: Child) -> str:
    """The output of a node that exits by itself with the exit code of a refusal."""
    try:
        medusa.wait_for(lambda: not process.running, "the node ends", within_s=90.0)
        assert process.exit_code == 65
    finally:
        kill(process)
    return (medusa.folder / f"{NODE}.out").read_text()


def deployed_by_hand(medusa: Installation, document: str) -> "subprocess.CompletedProcess[str]":
    """Run `medusa deploy` on a document."""
    folder = medusa.folder / "by_hand"
    folder.mkdir(exist_ok=True)
    (folder / "network.yaml").write_text(document)
    (folder / "reading.avsc").write_text(json.dumps(READING))
    settings = {
        "data": str(medusa.folder),
        "kafka.bootstrap_servers": medusa.stack.kafka_bootstrap_servers,
        "zookeeper.connect": medusa.stack.zookeeper_connect,
        "registry.url": medusa.stack.registry_url,
    }
    command = [sys.executable, "-P", "-m", "pipeline.cli.main", "deploy", "--no-wait"]
    command += ["-f", str(folder / "network.yaml")]
    command += [f"--set={key}={value}" for key, value in settings.items()]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@contextmanager
def stored(store: ZooKeeperStore, path: str, value: bytes) -> Iterator[None]:
    """Store a value at a path during the block."""
    before = store.get(path)
    if before is None:
        store.apply((Create(path, value),))
    else:
        store.apply((Set(path, value, before.version),))
    try:
        yield
    finally:
        now = store.get(path)
        assert now is not None
        if before is None:
            store.apply((Delete(path, now.version),))
        else:
            store.apply((Set(path, before.value, now.version),))


def test_a_newer_commit_marker_is_refused_before_the_fragment_is_claimed(
    medusa: Installation, store: ZooKeeperStore
) -> None:
    """No epoch, transaction or file; the status has the reason, and the node keeps running."""
    name = "newer_marker"
    medusa.deploy(WINDOWS.format(name=name), {"reading.avsc": READING})
    with medusa.node(NODE) as process:
        send(medusa, name, range(20))
        medusa.wait_for(partial(has_read, medusa, name, 20), "20 read", within_s=WITHIN_S)
        # In order, so that no transaction is left for Kafka to abort later.
        os.kill(process.pid, signal.SIGTERM)
        medusa.wait_for(lambda: not process.running, "the node ends", within_s=60.0)
        assert process.exit_code == 0
    markers = names(name).markers
    last = json.loads(medusa.records(markers)[-1].value or b"")
    newer = json.dumps({**last, "format": 2, "epoch": 1}).encode()
    medusa.send(markers, newer, key=b"marker", partition=0)
    medusa.producer.flush(10)
    await_no_node(medusa, store)
    before = everything(medusa, store)
    with medusa.node(NODE):
        status = medusa.await_state(name, "counts", LaneState.FAILED)
        after = everything(medusa, store)
    assert "a newer Medusa wrote this commit marker: format 2" in status.last_error
    reported = (ZNODES.nodes(OWNER), *statuses(medusa))
    assert after.without(*reported) == before.without(*reported)
    medusa.destroy(name)  # its data are compared at the end, by the current program


@pytest.mark.parametrize("path", [ZNODES.format(), ZNODES.node(OWNER, NodeId("tomorrow"))])
def test_an_older_program_changes_nothing_in_a_newer_catalog(
    medusa: Installation, store: ZooKeeperStore, path: str
) -> None:
    """Neither a node nor, if the catalog's own format is newer, a deploy of a new network."""
    await_no_node(medusa, store)
    with stored(store, path, b'{"format":2,"made_by":"tomorrow"}'):
        before = everything(medusa, store)
        output = ended(medusa, medusa.start_node(NODE))
        assert f"catalog {path}: a newer Medusa wrote this record: format 2" in output
        if path == ZNODES.format():
            done = deployed_by_hand(medusa, WINDOWS.format(name="never"))
            assert done.returncode == 65
            assert "a newer Medusa wrote this record: format 2" in done.stderr
        assert everything(medusa, store) == before


def test_the_format_is_raised_when_every_node_reads_it(
    medusa: Installation, store: ZooKeeperStore
) -> None:
    """A current node prevents it; a disconnected one that misses the raise exits by itself."""
    process = medusa.start_node(NODE)
    try:
        medusa.await_node(NODE, process)
        reported = statuses(medusa)
        before = everything(medusa, store).without(*reported)
        with pytest.raises(RefusedError, match=f"{NODE} .*reads up to format 1"):
            Catalog(store, ZNODES, newest=2).format.raise_to_newest()
        assert everything(medusa, store).without(*reported) == before
        with stored(store, ZNODES.format(), encode(FormatRecord(2))):
            output = ended(medusa, process)
    finally:
        kill(process)
    assert "a newer Medusa wrote this record: format 2, this one reads up to 1" in output
    await_no_node(medusa, store)
    present = store.get(ZNODES.format())
    assert present is not None
    with stored(store, ZNODES.format(), present.value):
        assert Catalog(store, ZNODES, newest=2).format.raise_to_newest() == 1
        with pytest.raises(NewerFormatError):
            medusa.catalog.format.current()
    assert medusa.catalog.format.current() == 1
