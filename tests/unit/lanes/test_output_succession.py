"""A fragment whose output topic another one has written starts anew, below no promise."""

from dataclasses import replace

import pytest

from pipeline.ids import (
    NO_EPOCH,
    Epoch,
    FragmentName,
    Incarnation,
    Millis,
    NetworkLife,
    NetworkVersion,
    Offset,
    StreamName,
    TopicId,
)
from pipeline.lanes.marker_invariants import violations
from pipeline.lanes.output_succession import (
    Succession,
    left_by,
    positions_anew,
    sources_anew,
    takeover_marker,
    with_positions,
)
from pipeline.lanes.source_ids import Begin, first_sources, sources_after
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import begun_anew
from pipeline.markers.commit_marker import (
    NO_BATCH,
    OUTPUTS_LEFT,
    CommitMarker,
    LeftOutput,
    Totals,
)
from pipeline.markers.refused import Refused
from pipeline.markers.signals import BoundaryRecord
from tests.unit.lanes.test_source_ids import REDRIVE, at, marker, source

OUTPUT, ELSEWHERE = TopicId("#out"), TopicId("#other-out")
TWO = Incarnation("two")
THIRD = NetworkVersion(3)
SUCCESSION = Succession(NetworkLife("life"), THIRD, OUTPUT, (FragmentName("other"),), ())
LAST = replace(marker({at("a"): 7}, source("a")), output=OUTPUT)
TO_END = Begin(
    {0: Offset(9), 1: Offset(4)}, {0: Offset(9), 1: Offset(4)}, skips=False, passes_over=True
)
FROM_BEGINNING = Begin({0: Offset(0)}, {0: Offset(9)}, skips=True, passes_over=False)


@pytest.mark.parametrize(
    ("last", "ran_before", "due"),
    [
        (LAST, True, True),
        (replace(LAST, anew="life@2", incarnation=TWO), True, True),
        (replace(LAST, anew="former@3", incarnation=TWO), True, True),
        (replace(LAST, anew="life@3"), True, False),
        (None, False, True),
        (None, True, False),
    ],
)
def test_succession_is_due_until_the_lane_has_started_anew(
    last: CommitMarker | None, *, ran_before: bool, due: bool
) -> None:
    """Not with lost markers: a start refuses those."""
    assert SUCCESSION.is_due(last, ran_before=ran_before) is due


def boundary(at_ms: int, topic_id: TopicId = OUTPUT) -> BoundaryRecord:
    """A published promise."""
    return BoundaryRecord(topic_id, "us.net.other", Epoch(1), Millis(at_ms), {0: Offset(1)})


def test_the_largest_promise_of_the_topic_counts() -> None:
    """Published or only committed, by any writer; promises about another topic do not count."""
    moved = replace(LAST, output=ELSEWHERE, boundary_ms=Millis(900), end={at("a"): Offset(99)})
    committed = replace(LAST, end={at("a"): Offset(8)})
    output = left_by(OUTPUT, [LAST, moved, committed], [boundary(60), boundary(800, ELSEWHERE)])
    assert output == LeftOutput(Millis(70), {(TopicId("#cars"), 0): Offset(8)})
    assert left_by(OUTPUT, [LAST], [boundary(80)]).promised_ms == 80
    assert left_by(OUTPUT, [], []) == LeftOutput(None, {})


def test_a_lane_remembers_its_promise_in_each_output() -> None:
    """For any number of later markers of another output, and any positions."""
    moved = LAST.with_output(ELSEWHERE)
    assert (moved.output, moved.output_ends, moved.end) == (ELSEWHERE, {}, LAST.end)
    on = replace(moved, boundary_ms=Millis(900), end={at("a"): Offset(99)})
    output = LeftOutput(Millis(70), {(TopicId("#cars"), 0): Offset(7)})
    assert left_by(OUTPUT, [on], []) == output
    assert left_by(ELSEWHERE, [on], []).promised_ms == 900
    assert on.with_output(TopicId("#third")).left_output(OUTPUT) == output
    back = on.with_output(OUTPUT)  # its later promises count again
    assert back.left_output(OUTPUT) == on.left_output(ELSEWHERE) == back.left_output(ELSEWHERE)
    assert back.outputs_left.keys() == {ELSEWHERE}
    assert LAST.with_output(OUTPUT) is LAST


def test_a_lane_that_starts_anew_keeps_its_promises_in_other_outputs() -> None:
    """Its positions are others then."""
    first, _ = fresh()
    own = LAST.with_output(ELSEWHERE)
    found = takeover_marker(first, own, LeftOutput(None, {}), SUCCESSION.token).with_output(
        ELSEWHERE
    )
    assert found.left_output(OUTPUT) == LAST.left_output(OUTPUT)


def test_a_marker_contains_a_bounded_number_of_outputs() -> None:
    """The latest ones."""
    found = LAST
    for number in range(2 * OUTPUTS_LEFT):
        found = found.with_output(f"#{number}")
    assert len(found.outputs_left) == OUTPUTS_LEFT
    assert found.left_output(OUTPUT) is None
    assert found.left_output(f"#{OUTPUTS_LEFT}") is not None


def test_skipped_records_include_those_read_by_the_others_since() -> None:
    """Their results are in the topic. From the beginning everything is read, settled or not."""
    sources = first_sources([source("a"), source("b", "prices")])
    output = LeftOutput(
        Millis(70), {(TopicId("#cars"), 0): Offset(12), (TopicId("#prices"), 0): Offset(5)}
    )
    begins = {StreamName("a"): TO_END, StreamName("b"): FROM_BEGINNING}
    found = positions_anew(sources, begins, output)
    assert found == {at("a"): 12, at("a", partition=1): 4, at("b", "prices"): 0}
    assert [one.skipped_ms for one in sources_anew(sources, begins, output)] == [None, 70]


def test_from_the_beginning_also_for_inputs_without_positions() -> None:
    """Later records count, whether or not the others have read them."""
    sources = first_sources([source("a")])
    output = LeftOutput(None, {(TopicId("#cars"), 0): Offset(5)})
    nothing = Begin({0: Offset(0)}, {0: Offset(0)}, skips=True, passes_over=False)
    assert positions_anew(sources, {StreamName("a"): nothing}, output) == {at("a"): 0}
    at_end = replace(nothing, passes_over=True)
    assert positions_anew(sources, {StreamName("a"): at_end}, output) == {at("a"): 5}


def test_its_sources_have_new_ids() -> None:
    """Source ids in dead letters of the former life do not refer to the new ones."""
    again = sources_after([source("a")], LAST)
    assert again[0].id not in {one.id for one in LAST.sources}
    assert sources_after([source("a")], None) == first_sources([source("a")])


def test_in_its_own_topics_a_lane_continues_at_its_positions() -> None:
    """Redriven records do not count twice; positions in other topics are removed."""
    first = {at("a"): Offset(0), at("a", REDRIVE): Offset(0)}
    own = {at("a"): Offset(7), at("a", REDRIVE): Offset(2), at("b"): Offset(3)}
    found = with_positions(first, own, {at("a"): Offset(9)})
    assert found == {at("a"): 9, at("a", REDRIVE): 2}


def fresh(*, anew: bool = True) -> tuple[CommitMarker, StartRequest]:
    """The first marker of a fragment that never ran, and its lane."""
    made = marker({at("a"): 2}, source("a"))
    request = StartRequest(
        Epoch(5), "digest", stateful=True, on_change=None, place="", sources=made.sources, anew=anew
    )
    plain = replace(
        made, epoch=Epoch(5), incarnation=TWO, totals=Totals(), boundary_ms=None, eviction_ms=None
    )
    return plain, request


def test_promise_and_counts_continue() -> None:
    """Only these are taken from the former life: no state, no batch, no position."""
    first, request = fresh()
    own = replace(
        LAST,
        epoch=Epoch(3),
        eviction_ms=Millis(95),
        refused={"a": Refused(None, {0: 4})},
        repeated=("#twice",),
    )
    found = takeover_marker(first, own, LeftOutput(Millis(80), {}), SUCCESSION.token)
    assert (found.batch, found.epoch, found.boundary_ms, found.eviction_ms) == (NO_BATCH, 3, 80, 80)
    assert (found.totals, found.end) == (own.totals, {at("a"): 2})
    assert (found.anew, found.refused, found.repeated) == ("life@3", {}, ("#twice",))
    # Its first marker may precede the last one of the former life: a user chose that.
    begun = begun_anew(found, request, Incarnation("three"))
    assert violations([own, begun]) == ()
    assert violations([own, begun_anew(found, fresh(anew=False)[1], Incarnation("three"))])


def test_without_a_former_life_any_epoch_follows() -> None:
    """No promise: nothing is settled."""
    first, _ = fresh()
    found = takeover_marker(first, None, LeftOutput(None, {}), SUCCESSION.token)
    assert (found.epoch, found.boundary_ms, found.nothing_read) == (NO_EPOCH, None, True)
