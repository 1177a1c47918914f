"""Records that retention removes before a lane has used them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.ids import Epoch, Incarnation, Millis, Offset, StreamName, TopicId, TopicName
from pipeline.lanes.expiring import (
    HALVINGS,
    NEAR,
    Cause,
    ExpiringRecords,
    LogNeeds,
    Observed,
    TopicLog,
    TopicNeeds,
    Use,
    needs_of,
    needs_of_rebuild,
    topic_log,
)
from pipeline.lanes.expiring_text import advice, message
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import InputPartition
from tests.profiles import examples
from tests.unit.lanes.marked import marked

TOPIC = TopicName("in")
ID = TopicId("id of in")
DAY: Final = 86_400_000
WEEK: Final = 7 * DAY
NOW = Millis(100 * DAY)


def at_times(*times_ms: int) -> Callable[[Millis], Mapping[int, Offset]]:
    """Offsets by time of a partition 0 with records of these timestamps."""

    def offsets_at(time_ms: Millis) -> Mapping[int, Offset]:
        found = (n for n, at_ms in enumerate(times_ms) if at_ms >= time_ms)
        return {0: Offset(next(found, len(times_ms)))}

    return offsets_at


@dataclass(frozen=True, slots=True)
class Case:
    """One partition with records of some timestamps, and a lane that needs some of them."""

    times_ms: tuple[int, ...]
    unread: int
    rebuild: int | None = None
    start: int = 0
    now_ms: int = NOW
    since_ms: int | None = None
    kept_ms: int | None = WEEK
    limited: bool = False
    running: bool = False
    spare: float | None = None

    def expiring(self) -> tuple[ExpiringRecords, ...]:
        """What is removed."""
        ends = {0: Offset(len(self.times_ms))}
        log = TopicLog(self.kept_ms, self.limited, {0: Offset(self.start)}, ends)
        needed = {} if self.rebuild is None else {0: Offset(self.rebuild)}
        needs = TopicNeeds(ID, {0: Offset(self.unread)}, needed)
        since = None if self.since_ms is None else Millis(self.since_ms)
        of = LogNeeds({TOPIC: needs}, self.running, since, self.spare)
        return Observed(TOPIC, log, at_times(*self.times_ms), Millis(self.now_ms)).expiring(of)


def expiring(*times_ms: int, **facts: Any) -> tuple[ExpiringRecords, ...]:
    """What is removed of a partition with records of these timestamps."""
    return Case(times_ms, **facts).expiring()


def test_unread_records_are_reported_from_half_of_the_retention_on() -> None:
    """With the age of the oldest of them, and from when on it may be removed."""
    came = NOW - 4 * DAY
    assert expiring(came - DAY, came, NOW - DAY, unread=1, now_ms=came + WEEK // 2) == ()
    (found,) = expiring(came - DAY, came, NOW - DAY, unread=1)
    assert (found.topic, found.partitions, found.use, found.cause) == (
        TOPIC, (0,), Use.UNREAD, Cause.AGE,
    )  # fmt: skip
    assert found.oldest_ms is not None
    assert came - WEEK / 2**HALVINGS <= found.oldest_ms <= came
    assert (found.kept_ms, found.removed_from_ms) == (WEEK, found.oldest_ms + WEEK)


@pytest.mark.parametrize("kept_ms", [WEEK, None])
def test_a_lane_that_has_read_everything_needs_nothing(kept_ms: int | None) -> None:
    """However old the records are; also if they were all removed."""
    assert expiring(1, 2, 3, unread=3, kept_ms=kept_ms) == ()
    assert expiring(1, 2, 3, unread=3, kept_ms=kept_ms, start=3, limited=True) == ()


def test_a_topic_that_keeps_records_for_ever_is_not_reported() -> None:
    """Nor a compacted one; with both policies, records are removed by age."""
    assert expiring(1, 2, unread=0, kept_ms=None) == ()
    config = {"retention.ms": "5", "retention.bytes": "-1"}
    for policy, kept_ms in (("compact", None), ("delete", 5), ("compact,delete", 5)):
        found = topic_log({**config, "cleanup.policy": policy}, {}, {})
        assert (found.kept_ms, found.limited) == (kept_ms, False)
    assert topic_log({**config, "retention.ms": "-1"}, {}, {}).kept_ms is None
    assert topic_log({**config, "retention.bytes": "7"}, {}, {}).limited
    assert not topic_log({"cleanup.policy": "compact", "retention.bytes": "7"}, {}, {}).limited


def test_a_newer_record_before_an_old_one_keeps_it() -> None:
    """Kafka removes from the beginning, as long as all records are old."""
    assert expiring(NOW, 1, unread=1) == ()


def test_records_that_were_removed_are_reported_of_a_lane_at_rest() -> None:
    """The position of a running lane is older than the log's beginning was asked for."""
    (found,) = expiring(1, 2, NOW, unread=0, start=2)
    assert (found.use, found.cause, found.oldest_ms) == (Use.UNREAD, Cause.REMOVED, None)
    assert expiring(1, 2, NOW, unread=0, start=2, running=True) == ()
    (found,) = expiring(1, 2, NOW, unread=0, start=3)
    assert found.cause is Cause.REMOVED


def test_a_new_partition_is_unread_from_its_beginning() -> None:
    """The marker has no position in it."""
    log = TopicLog(WEEK, False, {0: Offset(0), 1: Offset(4)}, {0: Offset(1), 1: Offset(9)})
    needs = LogNeeds({TOPIC: TopicNeeds(ID, {0: Offset(1)})})
    (found,) = Observed(TOPIC, log, lambda _: {0: Offset(1), 1: Offset(9)}, NOW).expiring(needs)
    assert (found.partitions, found.cause) == ((1,), Cause.AGE)


def test_a_rebuild_is_reported_from_half_of_what_was_left_on() -> None:
    """A window of five days of seven was healthy when the lane stopped: two days were left."""
    stopped = NOW
    times = (stopped - 5 * DAY, stopped - DAY)

    def later(days: float) -> tuple[ExpiringRecords, ...]:
        now_ms = stopped + int(days * DAY)
        return expiring(*times, unread=2, rebuild=0, now_ms=now_ms, since_ms=stopped)

    assert later(0) == later(1) == ()
    (found,) = later(1.1)
    assert (found.use, found.cause) == (Use.REBUILD, Cause.AGE)
    (found,) = later(3)
    assert found.oldest_ms == stopped + 3 * DAY - WEEK
    assert found.removed_from_ms == stopped + 3 * DAY


def test_a_rebuild_of_a_running_lane_is_reported_when_little_is_left() -> None:
    """A part of the retention; its unread records are a matter of its node's own report."""
    times = (NOW - 6 * DAY, NOW - 5 * DAY, NOW)
    for rebuild, spare, count in ((0, 1 / 8, 0), (0, 1 / 6, 1), (1, 1 / 6, 0), (0, 0.0, 0)):
        found = expiring(*times, unread=2, rebuild=rebuild, running=True, spare=spare)
        assert [one.use for one in found] == [Use.REBUILD] * count
    old = expiring(NOW - 8 * DAY, NOW, unread=2, rebuild=0, running=True, spare=0.0)
    assert [one.cause for one in old] == [Cause.AGE]
    (gone,) = expiring(*times, unread=3, rebuild=0, start=1, running=True, spare=0.0)
    assert (gone.use, gone.cause) == (Use.REBUILD, Cause.REMOVED)


def test_a_rebuild_from_a_topic_of_limited_size_is_reported_by_offsets() -> None:
    """If what is needed is among the oldest that the partition still has."""

    def found(rebuild: int, **facts: Any) -> list[tuple[Use, Cause]]:
        facts = {"start": 10, "limited": True, "spare": NEAR, **facts}
        every = expiring(*[NOW] * 90, unread=80, rebuild=rebuild, running=True, **facts)
        return [(one.use, one.cause) for one in every]

    assert found(19) == [(Use.REBUILD, Cause.SIZE)]
    assert found(20) == found(19, limited=False) == found(19, spare=0.1) == []
    assert found(19, start=0) == []


def test_a_partition_is_reported_for_its_unread_records_alone() -> None:
    """Whatever is done about them helps the rebuild as well."""
    found = expiring(1, 2, NOW, unread=1, rebuild=0, since_ms=NOW)
    assert [one.use for one in found] == [Use.UNREAD]
    (gone,) = expiring(1, 2, NOW, unread=3, rebuild=0, start=1, since_ms=NOW)
    assert (gone.use, gone.cause) == (Use.REBUILD, Cause.REMOVED)


def test_a_limited_size_counts_once_records_were_removed() -> None:
    """More than half of the offsets that the partition still has are unread."""
    times = [NOW] * 10
    for unread, start, reported in ((6, 2, False), (5, 2, True), (5, 0, False), (1, 2, False)):
        found = expiring(*times, unread=unread, start=start, limited=True, running=True)
        assert [one.cause for one in found] == [Cause.SIZE] * reported
    assert expiring(*times, unread=5, start=2) == ()


def test_a_partition_without_an_answer_is_judged_by_what_was_seen() -> None:
    """Its unread records are at least as old as its silence."""
    log = topic_log({"retention.ms": str(WEEK)}, {}, {})
    for days, reported in ((3, False), (4, True)):
        since = Millis(NOW - days * DAY)
        of_topic = TopicNeeds(ID, {0: Offset(3), 1: Offset(3)}, {}, {1: since})
        needs = LogNeeds({TOPIC: of_topic}, running=True)
        found = Observed(TOPIC, log, at_times(), NOW).expiring(needs)
        assert [(one.partitions, one.oldest_ms) for one in found] == [((1,), since)] * reported
    endless = replace(log, kept_ms=None)
    assert Observed(TOPIC, endless, at_times(), NOW).expiring(needs) == ()


@given(
    st.lists(st.integers(0, 4_000), max_size=12).map(tuple),
    st.integers(0, 12),
    st.integers(0, 4_000),
    st.integers(1, 2_000),
)
@settings(max_examples=examples(300))
def test_no_record_is_removed_unreported_and_no_young_one_is_reported(
    times_ms: tuple[int, ...], position: int, now_ms: int, kept_ms: int
) -> None:
    """Against a model that removes each record by Kafka's rule, in segments of one record."""
    unread = min(position, len(times_ms))
    removed = next((n for n, ms in enumerate(times_ms) if ms >= now_ms - kept_ms), len(times_ms))
    found = expiring(*times_ms, unread=unread, now_ms=now_ms, kept_ms=kept_ms)
    newest_before = max(times_ms[: unread + 1], default=now_ms)
    is_old = unread < len(times_ms) and newest_before < now_ms - kept_ms // 2
    assert bool(found) is is_old
    assert found or removed <= unread
    if found and found[0].oldest_ms is not None:
        step_ms = kept_ms / 2**HALVINGS + 1
        oldest_ms = max(newest_before, now_ms - kept_ms)
        assert oldest_ms - step_ms <= found[0].oldest_ms <= oldest_ms


def of_marker(end: int, needed: int) -> CommitMarker:
    """A marker with one position, in a topic of this id."""
    read = {InputPartition(StreamName("s"), TOPIC, 0): Offset(end)}
    request = StartRequest(Epoch(1), "digest", stateful=True, on_change=None, place="here")
    first = first_marker(request, Incarnation("a"), read, NOW)
    return replace(
        first, needed=dict.fromkeys(read, Offset(needed)), sources=marked(read, ids={TOPIC: ID})
    )


def test_needs_are_the_positions_and_what_the_state_was_made_from() -> None:
    """Of a running lane, whose state is in its checkpoint, the positions alone."""
    needs = needs_of(of_marker(9, 4), {TOPIC: ID})
    assert needs == LogNeeds({TOPIC: TopicNeeds(ID, {0: Offset(9)}, {0: Offset(4)})}, since_ms=NOW)
    running = needs_of(of_marker(9, 4), {TOPIC: ID}, running=True)
    assert running == LogNeeds({TOPIC: TopicNeeds(ID, {0: Offset(9)})}, True, NOW)
    assert needs_of(of_marker(9, 9), {TOPIC: ID}).topics[TOPIC].rebuild == {}


@pytest.mark.parametrize(
    ("moved_ms", "passed_ms", "spare"),
    [
        (None, DAY, NEAR),
        (0, DAY, NEAR),
        (DAY // 2, DAY, NEAR / 2),
        (DAY, DAY, 0.0),
        (2 * DAY, DAY, 0.0),
        (-DAY, DAY, NEAR),
        (0, 0, NEAR),
    ],
)
def test_a_rebuild_has_less_to_spare_the_slower_event_time_is(
    moved_ms: int | None, passed_ms: int, spare: float
) -> None:
    """While it keeps up with the clock, what is needed stays as young as it is."""
    first = replace(of_marker(8, 3), eviction_ms=Millis(5))
    moved = None if moved_ms is None else Millis(5 + moved_ms)
    last = replace(of_marker(9, 4), eviction_ms=moved)
    needs = needs_of_rebuild(first, last, {TOPIC: ID}, Millis(NOW + passed_ms))
    assert needs.topics == {TOPIC: TopicNeeds(ID, {0: Offset(9)}, {0: Offset(4)})}
    assert needs.spare == pytest.approx(spare)


def test_a_lane_without_state_has_nothing_to_rebuild() -> None:
    """Then nothing is asked."""
    last = of_marker(9, 9)
    assert needs_of_rebuild(last, last, {TOPIC: ID}, NOW).topics == {}


def test_positions_in_another_topic_do_not_count() -> None:
    """A deploy has replaced the topic, or left it."""
    assert needs_of(of_marker(9, 4), {TOPIC: "another"}).topics == {}
    assert needs_of(of_marker(9, 4), {}).topics == {}


AGED = ExpiringRecords(
    TOPIC, (0, 2), Use.UNREAD, Cause.AGE, WEEK, Millis(NOW - 4 * DAY - 7_384_005),
    Millis(NOW + 3 * DAY + 5),
)  # fmt: skip


def test_a_message_names_place_age_retention_and_time() -> None:
    """The time in whole seconds, durations in two units."""
    assert message(AGED, NOW) == (
        "unread records of topic in, partitions 0, 2 are up to 4d 2h old, and kept for 7d: they "
        "may be removed from 1970-04-14T00:00:00Z on"
    )
    now = replace(AGED, use=Use.REBUILD, removed_from_ms=NOW)
    assert message(now, NOW).startswith("records that a rebuild of its state would read of topic")
    assert message(now, NOW).endswith("kept for 7d: they may be removed now")
    many = replace(AGED, partitions=tuple(range(9)), cause=Cause.SIZE)
    assert "partitions 0, 1, 2, 3, 4, 5 and 3 more still has is unread" in message(many, NOW)
    oldest = message(replace(many, use=Use.REBUILD), NOW)
    assert "among the oldest of topic in, partitions 0" in oldest


@pytest.mark.parametrize(
    ("state", "found", "words"),
    [
        ("paused", AGED, "`medusa resume n.f`, or raise retention.ms of the topic"),
        ("failed", AGED, "remove the cause of its error, or raise retention.ms of the topic"),
        ("running", replace(AGED, cause=Cause.SIZE), "raise retention.bytes"),
        ("running", replace(AGED, use=Use.REBUILD), "let its event time go on"),
        ("paused", replace(AGED, cause=Cause.REMOVED), "deploy with `--state f=empty`"),
        (
            "pending",
            replace(AGED, cause=Cause.REMOVED, use=Use.REBUILD),
            "keep its checkpoint folder, and start a node",
        ),
    ],
)
def test_the_advice_follows_from_the_state(state: str, found: ExpiringRecords, words: str) -> None:
    """What was removed is not brought back by a start."""
    assert words in advice(found, "n.f", state)
