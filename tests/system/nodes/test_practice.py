"""Warm-up of an idle node: practice and rehearsal."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.embedded.class_archive import archive_path, ensure_archive
from brokers.embedded.java import find_java
from brokers.embedded.processes import Child
from pipeline.catalog.fragment_status import LaneState
from pipeline.cli.detached import ARCHIVE_PROGRAM
from pipeline.examples.memory import descendants
from pipeline.ids import FragmentId, FragmentName
from pipeline.markers.codec import decode_marker
from pipeline.names import FragmentNames
from tests.system.support import READING, WINDOWS, Installation, network_id, readings

pytestmark = [pytest.mark.system, pytest.mark.timeout(800)]


@pytest.fixture(scope="module")
def first(medusa: Installation) -> Iterator[Child]:
    """An idle node that uses the class archive."""
    ensure_archive(medusa.stack.cache, find_java(os.environ), ARCHIVE_PROGRAM)
    with medusa.node("first") as process:
        yield process


def test_practice_runs_every_kind_of_query_with_the_class_archive(
    medusa: Installation, first: Child
) -> None:
    """The archive is in the cache, from `make jars` or this test; each query has results."""
    archive = archive_path(medusa.stack.cache, find_java(os.environ))
    assert archive.exists()
    log = medusa.folder / "logs" / "node-first.log"

    def practice_summary() -> "re.Match[str] | None":
        return re.search(r"Java has practised, results: \{(.*)\}", log.read_text())

    maps = [Path(f"/proc/{pid}/maps").read_text() for pid in descendants(first.pid)]
    assert any(str(archive) in text for text in maps)
    medusa.wait_for(practice_summary, "Java has practised", within_s=300.0)
    found = practice_summary()
    assert found is not None
    results = dict(re.findall(r"'(\w+)': (\d+)", found.group(1)))
    assert results.keys() == {"converted", "means", "pairs"}
    assert all(int(count) > 0 for count in results.values())


@pytest.mark.usefixtures("first")
def test_rehearsal_runs_the_query_of_another_node_and_writes_nothing(
    medusa: Installation,
) -> None:
    """While records arrive; every commit marker in the log is its owner's."""
    names = FragmentNames(FragmentId(network_id("rehearsed"), FragmentName("counts")))
    topic = f"{names.network}-in"
    medusa.deploy(WINDOWS.format(name=names.network), {"reading.avsc": READING})
    log = medusa.folder / "logs" / "node-understudy.log"

    def rehearsed() -> bool:
        for reading in readings(20):
            medusa.send(topic, medusa.encoded(f"{topic}-value", READING, reading))
        medusa.producer.flush(10)
        return f"{names.network}.{names.fragment} was rehearsed" in log.read_text()

    medusa.await_state(names.network.name, names.fragment, LaneState.RUNNING, epoch=1)
    with medusa.node("understudy"):
        medusa.wait_for(rehearsed, "the rehearsal", within_s=300.0)
    markers = [decode_marker(r.value or b"", "marker") for r in medusa.records(names.markers)]
    assert {marker.epoch for marker in markers} == {1}
    assert markers[-1].totals.records_in > 0
