from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from brokers.records import KafkaRecord
from pipeline.ids import BatchId, Epoch, Incarnation, Millis, Offset, StreamName, TopicId, TopicName
from pipeline.lanes.result_headers import LATE_RESULT
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.commit_marker import CommitMarker, Totals
from pipeline.markers.positions import InputPartition
from pipeline.markers.signals import BoundaryRecord
from tests.faults.history import Kind, Place
from tests.faults.lanes import (
    Boundary,
    Marker,
    check_epochs,
    check_markers,
    check_promises,
    check_totals,
)
from tests.unit.faults.support import record

MARKERS, BOUNDARIES = TopicName("net.box.markers"), TopicName("net-out.boundaries")
PARTITIONS = [
    InputPartition(StreamName("readings"), TopicName("net-in"), number) for number in (0, 1)
]
STEPS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans()), min_size=1, max_size=12
)


def chain(steps: Sequence[tuple[int, int, bool]]) -> list[Marker]:
    """Markers as a lane writes them: each step is a batch, before some of them a new owner."""
    request = StartRequest(
        Epoch(1), "digest", stateful=True, on_change=None, place="fragment net.box"
    )
    positions = dict.fromkeys(PARTITIONS, Offset(0))
    marker = first_marker(request, Incarnation("1-0"), positions, Millis(0))
    found = [marker]
    for first, second, again in steps:
        if again:
            marker = replace(marker, epoch=Epoch(marker.epoch + 1))
            found.append(marker)
        end = {
            at: Offset(marker.end[at] + more)
            for at, more in zip(PARTITIONS, (first + 1, second), strict=True)
        }
        marker = replace(
            marker,
            batch=BatchId(marker.batch + 1),
            start=marker.end,
            end=end,
            boundary_ms=Millis((marker.boundary_ms or 0) + first),
            totals=Totals(records_out=marker.totals.records_out + second),
        )
        found.append(marker)
    return placed(found)


def placed(markers: Sequence[CommitMarker]) -> list[Marker]:
    """Markers with their offsets."""
    return [(Place(MARKERS, 0, 2 * at), marker) for at, marker in enumerate(markers)]


def shifted(marker: CommitMarker, by: int) -> CommitMarker:
    """A marker with another start."""
    return replace(marker, start={at: Offset(o + by) for at, o in marker.start.items()})


@given(STEPS)
def test_a_correct_chain_has_no_findings(steps: list[tuple[int, int, bool]]) -> None:
    """With any number of owners."""
    assert check_markers(chain(steps)) == ()


@given(STEPS, st.integers(1, 3))
def test_a_marker_that_skips_or_repeats_input_is_reported(
    steps: list[tuple[int, int, bool]], by: int
) -> None:
    """A gap loses records, an overlap computes them twice."""
    markers = chain([*steps, (5, 5, False)])
    place, last = markers[-1]
    gap = check_markers([*markers[:-1], (place, shifted(last, by))])
    assert {finding.kind for finding in gap} == {Kind.GAP}
    end = markers[-2][1].end[PARTITIONS[1]]
    assert str(place) in gap[0].message
    assert f"topic net-in, partition 1, offset {end + by} (input readings)" in gap[1].message
    overlap = check_markers([*markers[:-1], (place, shifted(last, -by))])
    assert {finding.kind for finding in overlap} == {Kind.OVERLAP}


@given(STEPS)
def test_a_marker_of_an_earlier_owner_is_reported(steps: list[tuple[int, int, bool]]) -> None:
    """After a marker of a newer epoch, an older one may not write."""
    markers = chain([*steps, (1, 1, True)])
    place, last = markers[-1]
    zombie = replace(last, epoch=Epoch(last.epoch - 1))
    (finding,) = check_markers([*markers[:-1], (place, zombie)])
    assert finding.kind is Kind.ZOMBIE
    assert f"topic net.box.markers, partition 0, offset {place.offset}" in finding.message


def test_a_new_owner_begins_with_a_copy() -> None:
    """Its first marker has the last one's positions."""
    markers = chain([(1, 1, False), (1, 1, False)])
    place, last = markers[-1]
    wrong = replace(last, epoch=Epoch(9))
    (finding,) = check_markers([*markers[:-1], (place, wrong)])
    assert finding.kind is Kind.MARKER
    assert "epoch 9 begins with another marker than a copy" in finding.message


def test_a_new_owner_has_read_nothing_of_new_partitions() -> None:
    """Its first marker contains where they begin."""
    markers = chain([(1, 1, False), (1, 1, False)])
    place, last = markers[-1]
    new = InputPartition(PARTITIONS[0].input, PARTITIONS[0].topic, 7)
    for end, count in ((Offset(0), 0), (Offset(1), 1)):
        grown = replace(
            last,
            epoch=Epoch(9),
            start={**last.start, new: Offset(0)},
            end={**last.end, new: end},
            needed={**last.needed, new: Offset(0)},
        )
        found = check_markers([*markers, (place, grown)])
        assert len(found) == count


def test_values_that_only_rise_may_not_fall() -> None:
    """Boundary, counts, positions, batches; and needed positions are not beyond the end."""
    markers = chain([(3, 3, False), (3, 3, False)])
    place, last = markers[-1]
    far = dict.fromkeys(PARTITIONS, Offset(1_000))
    spoilt = {
        "boundary 1 after 3": replace(last, boundary_ms=Millis(1)),
        "boundary None after 3": replace(last, boundary_ms=None),
        "records out 0 after 3": replace(last, totals=Totals()),
        "batch 7 follows on batch 0": replace(last, batch=BatchId(7)),
        "offset 1000 (input readings) is needed, beyond the end": replace(last, needed=far),
        "the end went back": replace(last, end=dict.fromkeys(PARTITIONS, Offset(0))),
    }
    for words, marker in spoilt.items():
        found = check_markers([*markers[:-1], (place, marker)])
        assert any(words in finding.message for finding in found), words
        assert {finding.kind for finding in found} == {Kind.MARKER}


def test_counts_equal_those_of_the_topics() -> None:
    """The marker is in the same transaction as the records that it counts."""
    markers = chain([(3, 3, False)])
    output = [record(offset) for offset in range(3)]
    assert check_totals(markers, output, []) == ()
    (finding,) = check_totals(markers, output[:2], [])
    assert "counts 3 records, readers find 2, the last at topic net-out" in finding.message
    (dead_letters,) = check_totals(markers, output, [record(4)])
    assert "counts 0 dead letters, readers find 1" in dead_letters.message
    assert check_totals([], output, []) == ()


def boundary(offset: int, t: int, position: int, epoch: int = 1) -> Boundary:
    """A boundary of both partitions of the output."""
    positions = {0: Offset(position), 1: Offset(position)}
    place = Place(BOUNDARIES, 0, offset)
    return place, BoundaryRecord(
        TopicId("an id"), "local.net.box", Epoch(epoch), Millis(t), positions
    )


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12), st.integers(0, 30))
def test_a_record_that_breaks_a_promise_is_reported(
    steps: list[tuple[int, int]], which: int
) -> None:
    """Records after the positions of a boundary have later event times."""
    records: list[KafkaRecord] = []
    boundaries: list[Boundary] = []
    at_ms = 0
    for more, later in steps:
        records += [record(len(records) + i, at_ms=at_ms + 1 + i % 3) for i in range(more)]
        at_ms += later + 3
        boundaries.append(boundary(len(boundaries), at_ms, len(records)))
    records.append(record(len(records), at_ms=at_ms + 1))
    assert check_promises(records, boundaries) == ()
    if not boundaries:
        return
    place, broken = boundaries[which % len(boundaries)]
    late = record(len(records), at_ms=broken.boundary_ms)
    found = check_promises([*records, late], boundaries)
    assert [finding.kind for finding in found] == [Kind.PROMISE]
    assert f"topic net-out, partition 0, offset {late.offset} has" in found[0].message
    assert f"topic {place.topic}" in found[0].message


def test_a_promise_excludes_earlier_records_and_other_partitions() -> None:
    """Below its positions any event time is allowed, and in partitions that it does not name."""
    promises = [boundary(0, 50, 10)]
    assert check_promises([record(9, at_ms=1), record(99, partition=2, at_ms=1)], promises) == ()


def test_a_result_marked_as_late_breaks_no_promise() -> None:
    """Unless it is above the promise that its mark names."""
    promises = [boundary(0, 50, 10)]
    late = replace(record(10, at_ms=50), headers=((LATE_RESULT, b"50"),))
    assert check_promises([late], promises) == ()
    (found,) = check_promises([replace(late, timestamp_ms=Millis(51))], promises)
    assert (found.kind, "marked as late by a promise of 50" in found.message) == (
        Kind.PROMISE,
        True,
    )


def test_boundaries_of_an_earlier_owner_and_falling_ones_are_reported() -> None:
    """A writer's epochs and boundaries only rise."""
    good = [boundary(0, 5, 1), boundary(1, 5, 2), boundary(2, 7, 3, epoch=2)]
    assert check_epochs(good) == ()
    (zombie,) = check_epochs([*good, boundary(3, 9, 4, epoch=1)])
    assert zombie.kind is Kind.ZOMBIE
    assert "topic net-out.boundaries, partition 0, offset 3 is of epoch 1" in zombie.message
    (fallen,) = check_epochs([*good, boundary(3, 6, 4, epoch=2)])
    assert fallen.kind is Kind.PROMISE
