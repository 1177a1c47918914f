"""Invariants of sequences of commit markers."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BrokenInvariantError
from pipeline.ids import BatchId, Epoch, Incarnation, Millis, Offset, StreamName, TopicName
from pipeline.lanes.marker_invariants import Breach, check_markers, violations
from pipeline.lanes.new_partitions import reassigned
from pipeline.lanes.start.decision import Rebuild
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import adopted, begun_anew, first_marker, passed_over, rebuilt
from pipeline.markers.commit_marker import CommitMarker, Totals
from pipeline.markers.cut import Cut
from pipeline.markers.positions import InputPartition
from tests.unit.lanes.marked import marked

AT = InputPartition(StreamName("cars"), TopicName("sightings"), 0)
NEW = InputPartition(StreamName("cars"), TopicName("sightings"), 1)
WANTED = StartRequest(Epoch(1), "digest", stateful=True, on_change=None, place="here")
STEPS = st.lists(st.sampled_from(["batch", "own", "anew", "rebuild", "grown"]), max_size=12)


def after(marker: CommitMarker, more: int = 10) -> CommitMarker:
    """The marker of the next batch."""
    totals = marker.totals
    return replace(
        marker,
        batch=BatchId(marker.batch + 1),
        start=marker.end,
        end={at: Offset(offset + more) for at, offset in marker.end.items()},
        late_ms=marker.eviction_ms,
        eviction_ms=Millis((marker.eviction_ms or 0) + more),
        boundary_ms=Millis((marker.boundary_ms or 0) + more),
        totals=Totals(totals.records_in + more, totals.records_out + more),
    )


def chain(steps: list[str]) -> list[CommitMarker]:
    """Sequences of markers as lanes write them."""
    first = first_marker(WANTED, Incarnation("0"), {AT: Offset(0)}, Millis(0))
    found = [first]
    for number, step in enumerate(steps, start=1):
        last, life = found[-1], Incarnation(str(number))
        request = replace(WANTED, epoch=last.epoch)
        match step:
            case "own":
                request = replace(request, epoch=Epoch(last.epoch + 1))
                found.append(adopted(last, request))
            case "anew":
                found.append(begun_anew(last, request, life))
            case "rebuild":
                wish = Rebuild(last, last.needed, last.eviction_ms, "gone")
                found.append(rebuilt(wish, last.needed, BatchId(0), request, life))
            case "grown":
                starts = {NEW: Offset(0), **last.end}
                found.append(adopted(reassigned(last, starts), request))
            case _:
                found.append(after(last))
    return found


@given(STEPS)
def test_markers_of_lanes_satisfy_the_invariants(steps: list[str]) -> None:
    """Batches, new owners, new incarnations, added partitions."""
    assert violations(chain(steps)) == ()


def test_event_time_passed_on_without_a_batch_satisfies_the_invariants() -> None:
    """Its marker differs from the last one only in its promise; the next batch follows on it."""
    *_, last = chain(["batch"])
    passed = replace(last, boundary_ms=Millis(99), written_at_ms=Millis(1))
    assert violations([last, passed, after(passed)]) == ()


def test_a_batch_ends_as_it_was_cut() -> None:
    """So does the copy of a new owner, or with new partitions."""
    *_, last = chain(["batch"])
    cut = replace(last, cut=Cut("1.1", {AT: Offset(20)}, Millis(20), 1))
    grown = reassigned(cut, {NEW: Offset(0), **last.end})
    assert grown.cut is not None
    assert grown.cut.end == {AT: Offset(20), NEW: Offset(0)}
    done = replace(after(cut), cut=None)
    assert violations([last, cut, adopted(cut, WANTED), grown]) == ()
    assert violations([last, cut, done]) == ()
    for wrong in (replace(done, end={AT: Offset(21)}), replace(grown, cut=None)):
        expected = ["batch 1 was cut at topic sightings"] if wrong.batch == 1 else []
        texts = [
            one.text[: len("batch 1 was cut at topic sightings")]
            for one in violations([cut, wrong])
        ]
        assert texts == expected
    other = replace(cut, cut=Cut("1.1", {AT: Offset(21)}, Millis(20), 1))
    (found,) = violations([cut, other])
    assert (found.breach, "offset 20" in found.text, found.text[-2:]) == (Breach.ORDER, True, "21")


def test_skipping_records_by_choice_satisfies_the_invariants() -> None:
    """A new incarnation may begin further on; further back only where Kafka has lost records."""
    *_, last = chain(["batch"])
    further = begun_anew(passed_over(last, {AT: Offset(50)}, {}), WANTED, Incarnation("b"))
    assert violations([last, further]) == ()
    back = replace(begun_anew(last, WANTED, Incarnation("b")), end={AT: Offset(5)})
    assert {one.breach for one in violations([last, back])} == {Breach.ORDER}
    assert violations([last, replace(back, needed={AT: Offset(5)}, chosen=True)]) == ()


BROKEN: list[tuple[Callable[[CommitMarker], CommitMarker], Breach, str]] = [
    (lambda m: replace(m, epoch=Epoch(0)), Breach.EPOCH, "although epoch 1 had written"),
    (lambda m: replace(m, start={AT: Offset(21)}), Breach.GAP, "begins at topic sightings"),
    (lambda m: replace(m, start={AT: Offset(19)}), Breach.OVERLAP, "ended at offset 20"),
    (lambda m: replace(m, batch=BatchId(-1)), Breach.ORDER, "batch -1 follows on batch 1"),
    (lambda m: replace(m, end={AT: Offset(19)}), Breach.ORDER, "the end went back"),
    (lambda m: replace(m, late_ms=Millis(3)), Breach.ORDER, "watermark of late records 3 after 10"),
    (lambda m: replace(m, late_ms=Millis(19)), Breach.ORDER, "batch 2 were late by 19, the batch"),
    (lambda m: replace(m, eviction_ms=None), Breach.ORDER, "watermark of the state None after 20"),
    (lambda m: replace(m, boundary_ms=Millis(19)), Breach.ORDER, "boundary 19 after 20"),
    (lambda m: replace(m, totals=Totals()), Breach.ORDER, "records in 0 after 20"),
    (lambda m: replace(m, needed={AT: Offset(99)}), Breach.ORDER, "offset 99 (input cars) is need"),
    (lambda m: replace(m, state="another"), Breach.ORDER, "the state is of another plan"),
]


@pytest.mark.parametrize(("spoil", "breach", "text"), BROKEN)
def test_each_broken_invariant_is_named(
    spoil: Callable[[CommitMarker], CommitMarker], breach: Breach, text: str
) -> None:
    """With the place of the marker that breaks it; and a lane does not start on it."""
    _, first, last = chain(["batch", "batch"])
    markers = [first, last, spoil(after(last))]
    assert violations(markers[:2]) == ()
    found = violations(markers)
    assert {(one.breach, one.at) for one in found} == {(breach, 2)}
    assert any(text in one.text for one in found)
    with pytest.raises(BrokenInvariantError, match="contradict each other") as caught:
        check_markers(markers, "topic net.markers")
    assert (caught.value.place, bool(caught.value.hint)) == ("topic net.markers", True)


def test_a_start_accepts_markers_removed_by_compaction() -> None:
    """Removed markers are not compared; values that never fall are compared all the same."""
    markers = chain(["batch"] * 4)
    remaining = [markers[0], markers[1], markers[4]]
    check_markers(remaining, "here")
    (wrong,) = violations(remaining)
    assert (wrong.breach, wrong.at, wrong.text) == (Breach.ORDER, 2, "batch 3 follows on batch 0")
    with pytest.raises(BrokenInvariantError, match="the end went back"):
        check_markers([*remaining[:2], replace(remaining[2], end={AT: Offset(1)})], "here")
    check_markers([], "here")


def test_positions_are_compared_by_source_when_streams_are_renamed() -> None:
    """Two sources over one topic may have exchanged names: each keeps its position."""
    *_, last = chain(["batch"])
    other = InputPartition(StreamName("trucks"), AT.topic, 0)
    ends = {AT: Offset(10), other: Offset(70)}
    before = replace(last, start=ends, end=ends, needed=ends, sources=marked(ends))
    cars, trucks = before.sources
    swapped = {AT: Offset(70), other: Offset(10)}
    sources = (replace(cars, name=other.input), replace(trucks, name=AT.input))
    after = replace(before, start=swapped, end=swapped, needed=swapped, sources=sources)
    assert violations([before, after]) == ()
    assert violations([before, replace(after, end=ends)])
