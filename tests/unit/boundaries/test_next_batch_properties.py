"""Properties of a lane's decisions between two batches, in any situation."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hypothesis import event, given, settings
from hypothesis import strategies as st

from pipeline.boundaries.ends import Ends
from pipeline.boundaries.next_batch import Batch, LastBatch, Limits, PassOn, Sample, Wait
from pipeline.boundaries.promise import watermark_for
from pipeline.boundaries.release import LEAST_WATERMARK_MS, Move, planned
from pipeline.ids import Millis, Offset, SteadyMillis, TopicName
from pipeline.markers.positions import InputPartition, Positions
from pipeline.network.boxes.shape import Shape, Stateless
from tests.profiles import examples
from tests.unit.boundaries.situations import (
    JOIN,
    SHAPES,
    Situation,
    in_force,
    promising,
    situation,
)
from tests.unit.boundaries.support import CARS, SPEED, START_MS, at, marker, positions


@dataclass(frozen=True)
class Drawn:
    """A situation, and the boundaries that were read, by offsets."""

    found: Situation
    promised: tuple[tuple[int, tuple[int, int]], ...]


OFFSETS = st.integers(0, 40)
PAIRS = st.tuples(OFFSETS, OFFSETS)


@st.composite
def drawn(draw: st.DrawFn, shapes: tuple[Shape, ...] = SHAPES) -> Drawn:
    """A lane of an external and a derived input, neither silent for long.

    One that has caught up has read all that was answered, and a boundary that is in effect.
    """
    shape, caught_up = draw(st.sampled_from(shapes)), draw(st.booleans())
    cars, speed = draw(PAIRS), draw(PAIRS)
    start = marker({**positions(CARS, *cars), **positions(SPEED, *speed)})
    if draw(st.booleans()):
        start = in_force(shape, start.end, draw(st.integers(1, 60)))
    progress = {
        at(CARS, p): Millis(5_001 + draw(st.integers(-50, 900)))
        for p in (0, 1)
        if caught_up or draw(st.integers(0, 9))
    }
    found = situation(replace(start, progress=progress), CARS, SPEED, shape=shape)
    promised: list[tuple[int, tuple[int, int]]] = []
    at_ms, offsets = 0, speed
    for number in range(draw(st.integers(int(caught_up), 4))):
        at_ms += draw(st.integers(1, 400))
        far = 0 if caught_up and not number else 8
        more = draw(st.tuples(st.integers(0, far), st.integers(0, far)))
        offsets = offsets[0] + more[0], offsets[1] + more[1]
        promised.append((at_ms, offsets))
        found = promising(found, at_ms, *offsets)
    if draw(st.booleans()):
        since = SteadyMillis(START_MS - draw(st.integers(0, 300)))
        moved = planned(found.time.release, Move(Millis(0), cut=False), since)
        found = replace(found, time=replace(found.time, release=moved))
    if isinstance(shape, Stateless) and draw(st.booleans()):
        ahead = {p: Offset(end + draw(st.integers(0, 5))) for p, end in start.end.items()}
        found = replace(found, last=LastBatch(ahead))
    ends = draw(answers(found.last.end, (0,) if caught_up else (-3, 0, 0, 1, 7, 30)))
    limits = Limits(draw(st.integers(1, 60)), draw(st.sampled_from((0, 0, 200))))
    begun = draw(st.none() | st.integers(0, 300))
    last = replace(found.last, at_ms=None if begun is None else SteadyMillis(START_MS - begun))
    return Drawn(replace(found, ends=ends, limits=limits, last=last), tuple(promised))


@st.composite
def answers(draw: st.DrawFn, end: Positions, more: tuple[int, ...]) -> Ends | None:
    """An answer of the brokers, in parts: new ends, the same ones, or older ones."""
    if not draw(st.integers(0, 9)):
        return None
    found: dict[TopicName, dict[int, Offset]] = {}
    for place, offset in end.items():
        if draw(st.integers(0, 9)):
            there = Offset(max(0, offset + draw(st.sampled_from(more))))
            found.setdefault(place.topic, {})[place.partition] = there
    return Ends(START_MS, found)


def answered(found: Situation, place: InputPartition) -> int | None:
    """The answered end of a partition."""
    ends: Mapping[TopicName, Mapping[int, Offset]] = (
        {} if found.ends is None else found.ends.by_topic
    )
    return ends.get(place.topic, {}).get(place.partition)


@given(drawn())
@settings(max_examples=examples(400))
def test_ends_never_go_back_and_never_beyond_the_answer(given_: Drawn) -> None:
    """A partition without an answer keeps its position; the limit holds but for one offset each."""
    found, decision = given_.found, given_.found.decision
    if not isinstance(decision, Batch):
        return
    assert decision.end.keys() == found.last.end.keys()
    for place, end in decision.end.items():
        position, there = found.last.end[place], answered(found, place)
        assert end >= position
        assert end == position or (there is not None and end <= there)
        if there is not None and there > position:
            assert decision.end == found.last.end or end > position
    read = sum(end - found.last.end[place] for place, end in decision.end.items())
    assert read <= found.limits.offsets + len(decision.end)
    event("reads" if read else "reads nothing")


@given(drawn())
@settings(max_examples=examples(400))
def test_event_time_rises_and_stays_within_what_its_inputs_allow(given_: Drawn) -> None:
    """By the progress of finished batches, and by the boundaries that the batch covers."""
    found = given_.found
    time, decision = found.decided
    if isinstance(decision, Wait | Sample) or decision.event_ms is None:
        assert time.release == found.time.release
        return
    event(type(decision).__name__)
    event_ms, before_ms = decision.event_ms, found.time.release.in_force_ms
    assert before_ms is None or event_ms > before_ms
    end = decision.end if isinstance(decision, Batch) else found.last.end
    read = [found.time.progress.get(at(CARS, p)) for p in (0, 1)]
    assert all(at_ms is not None and event_ms <= at_ms - 5_001 for at_ms in read)
    covered = [
        at_ms
        for at_ms, offsets in given_.promised
        if all(end[at(SPEED, p)] >= offset for p, offset in enumerate(offsets))
    ]
    assert event_ms <= max(covered)
    assert time.release.moved_at_ms == found.now


@given(drawn())
@settings(max_examples=examples(400))
def test_spark_has_something_to_do_in_every_batch(given_: Drawn) -> None:
    """Records, or a watermark above the last one: otherwise it would execute none."""
    found, decision = given_.found, given_.found.decision
    if not isinstance(decision, Batch) or decision.end != found.last.end:
        return
    assert decision.event_ms is not None
    assert not isinstance(found.shape, Stateless)
    watermark_ms, before_ms = watermark_for(found.shape, decision.event_ms), 0
    if found.time.release.in_force_ms is not None:
        before_ms = watermark_for(found.shape, found.time.release.in_force_ms)
    assert watermark_ms > before_ms
    assert watermark_ms >= LEAST_WATERMARK_MS


@given(drawn((Stateless(), JOIN)))
@settings(max_examples=examples(400))
def test_only_a_finished_lane_without_state_passes_on(given_: Drawn) -> None:
    """And only if there is nothing to read."""
    found, decision = given_.found, given_.found.decision
    if not isinstance(decision, PassOn):
        return
    event("passes on")
    assert isinstance(found.shape, Stateless)
    assert found.time.positions == found.last.end
    assert all((answered(found, p) or 0) <= end for p, end in found.last.end.items())


@given(drawn())
@settings(max_examples=examples(400))
def test_a_lane_that_waits_decides_when_it_is_due(given_: Drawn) -> None:
    """Without news. A wait for the pace may be followed by one for a movement, and no other."""
    found, decision = given_.found, given_.found.decision
    for _ in range(2):
        if not isinstance(decision, Wait) or decision.until_ms is None:
            break
        event("waits")
        assert found.now < decision.until_ms <= found.now + 1_000
        paced = found.last.at_ms is not None and found.now < found.last.at_ms + found.limits.pace_ms
        found = found.later(decision.until_ms)
        decision = found.decision
        if not paced:
            assert not isinstance(decision, Wait)
    assert not isinstance(decision, Wait) or decision.until_ms is None
