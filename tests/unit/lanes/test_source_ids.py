"""Sources keep their positions under any stream name."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import RefusedError
from pipeline.ids import (
    Epoch,
    Incarnation,
    Millis,
    NetworkLife,
    NetworkVersion,
    Offset,
    StreamName,
    TopicId,
    TopicName,
)
from pipeline.lanes.source_ids import (
    Begin,
    PlannedSource,
    begins_of,
    begun,
    carry,
    first_positions,
    first_sources,
    next_number,
    planned_sources,
    sources_after,
)
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.commit_marker import CommitMarker, Totals
from pipeline.markers.cut import Cut
from pipeline.markers.deploys import DeployId
from pipeline.markers.positions import InputPartition
from pipeline.markers.refused import Refused
from tests.unit.spark.support import fragment

REDRIVE, ADVANCES = TopicName("net.f.redrive"), TopicName("net.f.advances")
"""An earlier Medusa wrote the second one; no plan reads it."""


def source(
    name: str, topic: str = "cars", definition: str = "d", topic_id: str = "", timing: str = "t"
) -> PlannedSource:
    """A source of a plan; its topic has the id of its name by default."""
    topics = ((TopicName(topic), TopicId(topic_id or f"#{topic}")),)
    own = ((REDRIVE, TopicId(f"#{REDRIVE}")),)
    return PlannedSource(StreamName(name), definition, timing, (*topics, *own))


def at(name: str, topic: str = "cars", partition: int = 0) -> InputPartition:
    """A partition of an input."""
    return InputPartition(StreamName(name), TopicName(topic), partition)


def marker(ends: Mapping[InputPartition, int], *planned: PlannedSource) -> CommitMarker:
    """A marker of a lane at these positions."""
    positions = {place: Offset(offset) for place, offset in ends.items()}
    request = StartRequest(
        Epoch(1), "digest", stateful=True, on_change=None, place="", sources=first_sources(planned)
    )
    first = first_marker(request, Incarnation("one"), positions, Millis(0))
    return replace(
        first,
        progress={place: Millis(offset) for place, offset in ends.items()},
        totals=Totals(records_in=5),
        boundary_ms=Millis(70),
        eviction_ms=Millis(60),
    )


def test_a_renamed_stream_keeps_its_positions() -> None:
    """A name is a label."""
    before = marker({at("a"): 7, at("a", REDRIVE): 2}, source("a"))
    before = replace(before, refused={"a": Refused(None, {0: 4}), "box": Refused(None, {0: 1})})
    carried = carry(before, (source("b"),))
    assert carried.marker.end == {at("b"): 7, at("b", REDRIVE): 2}
    assert carried.marker.start == carried.marker.needed == carried.marker.end
    assert list(carried.marker.progress) == list(carried.marker.end)
    assert carried.marker.refused.keys() == {"b", "box"}
    assert (carried.unread, carried.same, carried.marker.left) == ((), True, ())
    assert carried.marker.sources[0].id == before.sources[0].id


def test_a_cut_is_kept_under_the_names_of_the_same_sources() -> None:
    """With other ones the next batch is another one."""
    last = marker({at("cars"): 7}, source("cars"))
    last = replace(last, cut=Cut("1.0", {at("cars"): Offset(9)}, Millis(5), 2))
    found = carry(last, [source("autos")]).marker.cut
    assert found == Cut("1.0", {at("autos"): Offset(9)}, Millis(5), 2)
    assert carry(last, [source("cars"), source("trucks", "trucks")]).marker.cut is None
    assert carry(last, [source("trucks", "trucks")]).marker.cut is None


def without_redrive(name: str) -> PlannedSource:
    """A source of a fragment without a redrive topic."""
    planned = source(name)
    return replace(planned, topics=tuple(one for one in planned.topics if one[0] != REDRIVE))


def test_a_redrive_topic_added_later_leaves_all_positions_unchanged() -> None:
    """The source stays the same; the new topic has no position yet."""
    before = marker({at("a"): 7}, without_redrive("a"))
    assert before.redrive is None
    carried = carry(before, (source("a"),))
    assert carried.marker.end == before.end
    assert (carried.unread, carried.same, carried.marker.left) == ((), True, ())
    assert carried.marker.sources[0].id == before.sources[0].id
    assert carried.marker.redrive == (REDRIVE, "#net.f.redrive")


def test_redriven_records_stay_read_after_the_redrive_topic_is_removed() -> None:
    """For any number of topics."""
    plain = {at("a"): 7}
    for before, left in (
        (marker(plain, without_redrive("a")), {at("a"): 7}),
        (marker({**plain, at("a", REDRIVE): 2}, source("a")), {at("a"): 7, at("a", REDRIVE): 2}),
    ):
        (found,) = carry(before, (source("b", "owners"),)).marker.left
        assert found.end == left


def with_advances(name: str) -> PlannedSource:
    """A source of an earlier Medusa, which read event time from a topic."""
    planned = source(name)
    return replace(planned, topics=(*planned.topics, (ADVANCES, TopicId(f"#{ADVANCES}"))))


def test_positions_in_a_topic_that_only_an_earlier_medusa_read_are_removed() -> None:
    """The source stays the same, and so do its other positions; nothing else of it is left."""
    before = marker({at("a"): 7, at("a", REDRIVE): 2, at("a", ADVANCES): 3}, with_advances("a"))
    carried = carry(before, (source("a"),))
    assert carried.marker.end == {at("a"): 7, at("a", REDRIVE): 2}
    assert (carried.unread, carried.same, carried.marker.left) == ((), True, ())
    assert carried.marker.sources[0].id == before.sources[0].id
    (found,) = carry(before, (source("b", "owners"),)).marker.left
    assert found.end == {at("a"): 7, at("a", REDRIVE): 2}


def test_a_plan_reads_a_redrive_topic_with_a_known_id() -> None:
    """Without one it reads its streams only."""
    planned = fragment("toll_notifications")
    ids = {stream.topic: f"#{stream.topic}" for stream in planned.inputs}
    for redrive in ({}, {planned.names.redrive: "#redrive"}):
        for one in planned_sources(planned, {**ids, **redrive}):
            own = [topic for topic, _ in one.topics[1:]]
            assert own == [*redrive]


def test_event_times_of_a_changed_definition_are_removed() -> None:
    """They do not apply to the present rows; positions stay."""
    before = marker({at("a"): 7, at("b", "prices"): 5}, source("a"), source("b", "prices"))
    planned = source("a", timing="other"), source("b", "prices", definition="other")
    carried = carry(before, planned)
    assert carried.marker.progress == {at("b", "prices"): 5}
    assert carried.marker.end == before.end


def test_a_topic_with_the_same_id_is_the_same_topic() -> None:
    """For example after a restore under other names."""
    carried = carry(marker({at("a"): 7}, source("a")), (source("a", "moved", topic_id="#cars"),))
    assert carried.marker.end == {at("a", "moved"): 7}
    assert carried.same


def test_a_recreated_topic_is_unread() -> None:
    """Its offsets are of other records; the positions in the former one are kept."""
    carried = carry(marker({at("a"): 7}, source("a")), (source("a", topic_id="new"),))
    assert carried.marker.end == {}
    assert (carried.unread, carried.same) == (("a",), False)
    assert carried.marker.sources[0].id == "new/0"
    (left,) = carried.marker.left
    assert (left.source.id, left.end) == ("#cars/0", {at("a"): 7})


def test_positions_of_a_removed_input_are_kept_until_it_returns() -> None:
    """Even under another name."""
    before = marker(
        {at("a"): 7, at("a", REDRIVE): 2, at("b", "owners"): 9},
        source("a"),
        source("b", "owners"),
    )
    without = carry(before, (source("b", "owners"),))
    assert without.marker.end == {at("b", "owners"): 9}
    assert (without.unread, without.same) == ((), False)
    again = carry(without.marker, (source("b", "owners"), source("c")))
    assert again.marker.end == {at("b", "owners"): 9, at("c"): 7, at("c", REDRIVE): 2}
    assert again.marker.progress[at("c")] == 7
    assert (again.unread, again.same, again.marker.left) == ((), False, ())
    assert [one.id for one in again.marker.sources] == ["#owners/0", "#cars/0"]


@pytest.mark.parametrize(
    ("now", "ends"),
    [
        # Both keep their names, in either order.
        ((source("a", definition="x"), source("b", definition="y")), {"a": 5, "b": 8}),
        ((source("b", definition="y"), source("a", definition="x")), {"a": 5, "b": 8}),
        # They exchange their names: the definition takes precedence over the name.
        ((source("b", definition="x"), source("a", definition="y")), {"b": 5, "a": 8}),
        # One gets another definition: the other one is identified, so this one is, too.
        ((source("a", definition="z"), source("b", definition="y")), {"a": 5, "b": 8}),
        ((source("c", definition="z"), source("b", definition="y")), {"c": 5, "b": 8}),
        # Only the order identifies them.
        ((source("c", definition="u"), source("d", definition="v")), {"c": 5, "d": 8}),
        # One of them is removed.
        ((source("c", definition="y"),), {"c": 8}),
        ((source("b", definition="u"),), {"b": 8}),
    ],
)
def test_two_sources_over_one_topic_are_distinct(
    now: tuple[PlannedSource, ...], ends: dict[str, int]
) -> None:
    """Each has its own position."""
    before = marker(
        {at("a"): 5, at("b"): 8}, source("a", definition="x"), source("b", definition="y")
    )
    carried = carry(before, now)
    assert carried.marker.end == {at(name): end for name, end in ends.items()}
    assert len(carried.marker.left) == 2 - len(now)


def test_a_third_source_over_a_topic_is_unread() -> None:
    """It gets a number that was never used, so that no dead letter of another refers to it."""
    before = marker({at("a"): 5, at("b"): 8}, source("a"), source("b"))
    without = carry(before, (source("a"),)).marker
    more = carry(without, (source("a"), source("b"), source("c")))
    assert (more.unread, more.marker.end) == (("c",), {at("a"): 5, at("b"): 8})
    assert [one.id for one in more.marker.sources] == ["#cars/0", "#cars/1", "#cars/2"]


NAMES = st.lists(st.sampled_from("abcd"), unique=True, min_size=1, max_size=4)
TOPICS = st.sampled_from(["cars", "owners"])


@given(st.data())
def test_no_position_is_lost_or_assigned_twice(data: st.DataObject) -> None:
    """For any sequence of plans: each position that was read stays in one source."""
    current: CommitMarker | None = None
    for _ in range(4):
        planned = tuple(
            source(name, data.draw(TOPICS), data.draw(st.sampled_from("xy")))
            for name in data.draw(NAMES)
        )
        if current is None:
            ends = {at(s.name, s.topics[0][0]): n for n, s in enumerate(planned)}
            current = marker(ends, *planned)
            continue
        before = _by_id(current)
        carried = carry(current, planned)
        after = _by_id(carried.marker)
        assert after == before
        new = {
            at(s.name, s.topics[0][0]): Offset(100 + n)
            for n, s in enumerate(carried.marker.sources)
            if s.name in carried.unread
        }
        current = replace(carried.marker, end={**carried.marker.end, **new})
        assert len({one.id for one in current.sources}) == len(planned)


def _by_id(found: CommitMarker) -> dict[str, int]:
    """The position of each source that has one."""
    ends: dict[str, int] = {
        one.id: found.end[at(one.name, one.topics[0][0])]
        for one in found.sources
        if at(one.name, one.topics[0][0]) in found.end
    }
    return {**ends, **{one.source.id: next(iter(one.end.values())) for one in found.left}}


# --- sources that were never read ---------------------------------------------------------------

BEGINNING = Begin(
    {0: Offset(2), 1: Offset(0)}, {0: Offset(9), 1: Offset(4)}, skips=True, passes_over=False
)
END = Begin(
    {0: Offset(9), 1: Offset(4)}, {0: Offset(9), 1: Offset(4)}, skips=False, passes_over=True
)


def test_a_source_that_was_never_read_needs_a_decision() -> None:
    """An automatic choice could lose or repeat records without an error."""
    carried = carry(marker({at("a"): 7}, source("a")), (source("a"), source("b", "owners")))
    with pytest.raises(RefusedError, match="stream b was never read") as caught:
        begins_of(carried, {}, "fragment net.f")
    assert "--input b=beginning" in caught.value.hint
    name = StreamName("b")
    assert begins_of(carried, {name: END, StreamName("a"): END}, "") == {name: END}


def test_a_lane_that_has_read_nothing_needs_none() -> None:
    """Nothing was published without it: it begins where its document specifies."""
    before = replace(marker({at("a"): 7}, source("a")), totals=Totals())
    carried = carry(before, (source("a"), source("b", "owners")))
    assert begins_of(carried, {}, "") == {}


def test_a_source_begins_where_was_decided() -> None:
    """At the end nothing is skipped; from the beginning on, the settled part is."""
    carried = carry(marker({at("a"): 7}, source("a")), (source("a"), source("b", "owners")))
    places = (at("b", "owners"), at("b", "owners", 1))
    found = begun(carried, {StreamName("b"): END}, rebuilds=False)
    assert [found.end[place] for place in places] == [9, 4]
    assert [one.skipped_ms for one in found.sources] == [None, None]
    found = begun(carried, {StreamName("b"): BEGINNING}, rebuilds=False)
    assert [found.end[place] for place in places] == [2, 0]
    assert [one.skipped_ms for one in found.sources] == [None, 70]
    assert found.end[at("a")] == 7


def test_a_rebuild_reads_the_existing_records_of_the_topic() -> None:
    """Unpublished, as all that it reads; later ones are read by the batches that follow."""
    carried = carry(marker({at("a"): 7}, source("a")), (source("a"), source("b", "owners")))
    found = begun(carried, {StreamName("b"): BEGINNING}, rebuilds=True)
    places = (at("b", "owners"), at("b", "owners", 1))
    assert [found.end[place] for place in places] == [9, 4]
    assert [found.needed[place] for place in places] == [2, 0]


B = StreamName("b")
FIRST = DeployId(NetworkLife("one"), NetworkVersion(1))
FOURTH = replace(FIRST, version=NetworkVersion(4))
TWO = (source("a"), source("b", "owners"))


def late_marker(read: int) -> CommitMarker:
    """Of a lane of an earlier version that began to read b after the decision about it."""
    ends = {at("a"): 7, at("b", "owners"): read, at("b", "owners", 1): 1}
    before = marker(ends, *TWO)
    sources = tuple(replace(one, begun=True) for one in before.sources)
    return replace(before, sources=sources, decided=FIRST)


@pytest.mark.parametrize(
    ("begin", "rebuilds", "ends", "needed"),
    [
        (END, False, [12, 4], [12, 4]),
        (BEGINNING, False, [12, 1], [12, 1]),
        (BEGINNING, True, [12, 4], [2, 0]),
    ],
)
def test_the_decision_counts_though_an_earlier_version_has_started(
    begin: Begin, *, rebuilds: bool, ends: list[int], needed: list[int]
) -> None:
    """Its records are not read again; a rebuilt state includes them."""
    due = replace(begin, deploy=FOURTH)
    carried = carry(late_marker(12), TWO, {B: due})
    assert carried.unread == ("b",)
    assert not carried.same
    assert [one.id for one in carried.marker.sources] == ["#cars/0", "#owners/1"]
    assert carried.marker.left == ()
    found = begun(carried, begins_of(carried, {B: due}, ""), rebuilds=rebuilds)
    places = (at("b", "owners"), at("b", "owners", 1))
    assert [found.end[place] for place in places] == ends
    assert [found.needed[place] for place in places] == needed
    assert found.end[at("a")] == 7


def test_records_that_an_earlier_version_should_skip_are_not_read() -> None:
    """No batch has read there, so its positions contain only the decision."""
    due = replace(BEGINNING, deploy=FOURTH)
    late = late_marker(12)
    a, b = late.sources
    carried = carry(replace(late, sources=(a, replace(b, begun=False))), TWO, {B: due})
    found = begun(carried, {B: due}, rebuilds=False)
    assert [found.end[at("b", "owners", partition)] for partition in (0, 1)] == [2, 0]


def test_a_rebuild_reads_a_partition_added_after_the_decision() -> None:
    """The records that an earlier version has read there belong to the state."""
    due = replace(END, deploy=FOURTH, offsets={0: Offset(9)}, until={0: Offset(9)})
    found = begun(carry(late_marker(12), TWO, {B: due}), {B: due}, rebuilds=True)
    assert [found.needed[at("b", "owners", p)] for p in (0, 1)] == [9, 0]
    assert [found.end[at("b", "owners", p)] for p in (0, 1)] == [12, 1]


def test_records_skipped_by_a_late_lane_count_as_read() -> None:
    """Another one has started since, which does not read that stream."""
    without = carry(late_marker(12), (source("a"),)).marker
    carried = carry(without, TWO, {B: replace(BEGINNING, deploy=FOURTH)})
    assert carried.read == {at("b", "owners"): 12, at("b", "owners", 1): 1}


def test_an_id_is_never_reused() -> None:
    """Dead letters of a former life contain its source ids, so the new one has others."""
    first = late_marker(12)
    assert next_number(first) == 1
    anew = sources_after(TWO, first)
    assert [one.id for one in anew] == ["#cars/1", "#owners/1"]
    without = replace(first, sources=anew[:1], retired=1)
    assert [one.id for one in carry(without, TWO).marker.sources] == ["#cars/1", "#owners/1"]
    assert next_number(replace(without, retired=5)) == 5


def test_a_decision_is_executed_once() -> None:
    """By the version of that deploy, or a later one, of the same life."""
    done = replace(late_marker(12), decided=FOURTH)
    assert carry(done, TWO, {B: replace(END, deploy=FOURTH)}).unread == ()
    of_another_life = replace(END, deploy=replace(FOURTH, life=NetworkLife("two")))
    assert carry(late_marker(12), TWO, {B: of_another_life}).unread == ()
    assert carry(late_marker(12), TWO, {B: END}).unread == ()


def test_records_removed_meanwhile_are_not_read() -> None:
    """Retention continues between a deploy and the start of the lane."""
    later = BEGINNING.not_before({0: Offset(5)})
    assert later == Begin(
        {0: Offset(5), 1: Offset(0)}, {0: Offset(9), 1: Offset(4)}, skips=True, passes_over=False
    )


def test_a_fragment_that_never_ran_begins_where_was_decided() -> None:
    """Otherwise where its document specifies."""
    sources = first_sources((source("a"), source("b", "owners")))
    given = {at("a"): Offset(1), at("b", "owners"): Offset(1), at("b", "owners", 1): Offset(1)}
    found = first_positions(given, sources, {StreamName("b"): END})
    assert found == {at("a"): 1, at("b", "owners"): 9, at("b", "owners", 1): 4}
