from dataclasses import replace

from pipeline.ids import BatchId, Incarnation, Offset
from pipeline.lanes.new_partitions import begin_of_all, no_beginning, reassigned
from pipeline.lanes.start.decision import Rebuild, decide_start
from pipeline.lanes.start.markers import rebuilt
from tests.unit.lanes.start.test_decision import CARS, GONE, NEW, STATEFUL, marker


def test_added_and_removed_partitions() -> None:
    """A new one begins at the given offset; existing positions stay; removed ones are dropped."""
    grown = reassigned(marker(7), {CARS: Offset(0), NEW: Offset(5)})
    assert grown.end == {CARS: Offset(80), NEW: Offset(5)}
    assert grown.needed == {CARS: Offset(70), NEW: Offset(5)}
    assert reassigned(grown, {NEW: Offset(0)}).end == {NEW: Offset(5)}
    assert reassigned(marker(7), {CARS: Offset(0)}) is not None


def test_a_rebuild_reads_nothing_of_a_partition_added_later() -> None:
    """The state has no record of it: the batch after the rebuild begins at its first record."""
    found = decide_start(marker(4), GONE, STATEFUL)
    assert isinstance(found, Rebuild)
    grown = reassigned(found.marker, {**found.marker.end, NEW: Offset(7)})
    begin = begin_of_all(found.begin, grown.end)
    assert begin == {**marker(4).needed, NEW: Offset(7)}
    done = rebuilt(replace(found, marker=grown), begin, BatchId(0), STATEFUL, Incarnation("two"))
    assert (done.end, done.needed) == (grown.end, begin)
    assert begin_of_all(None, grown.end) is None


def test_a_checkpoint_adds_a_partition_at_its_first_offset_only() -> None:
    """Partitions that it contains may be at any offset."""
    begin = {CARS: Offset(80)}
    assert no_beginning(begin, {CARS: Offset(80), NEW: Offset(0)}) is None
    found = no_beginning(begin, {CARS: Offset(80), NEW: Offset(5)})
    assert found == "topic sightings, partition 1 is new and begins at 5, not 0"
