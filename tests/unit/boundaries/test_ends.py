"""Ends of partitions, by the answers of their leaders."""

from pipeline.boundaries.ends import ENDS_FRESH_MS, Answer, Ends, ends_of
from pipeline.ids import Offset, SteadyMillis, TopicName
from tests.unit.boundaries.support import CARS, at

CAR_TOPIC = CARS.topic
FAR = TopicName("far")


def answered(before: Ends | None, now_ms: int, *ends: int | None) -> Ends:
    """Ends of the partitions of `CARS`; None: its leader does not answer."""
    stable = {p: Offset(end) for p, end in enumerate(ends) if end is not None}
    missing = frozenset((CAR_TOPIC, p) for p, end in enumerate(ends) if end is None)
    by_topic = {CAR_TOPIC: stable} if stable else {}
    return ends_of(before, SteadyMillis(now_ms), Answer(by_topic, by_topic, {}, missing))


def test_a_partition_is_missing_since_its_first_answer_that_lacks() -> None:
    """Until it is answered again."""
    first = answered(None, 0, 5, 5)
    away = answered(answered(first, 100, 5, None), 200, 6, None)
    assert away.missing == {(CAR_TOPIC, 1): 100}
    assert answered(away, 300, 6, 5).missing == {}


def test_the_last_answer_counts_as_an_observation_for_five_seconds() -> None:
    """A silence goes on over single answers that are missing."""
    away = answered(answered(answered(None, 0, 5, 5), 100, 5, None), 200, 5, None)
    assert away.lately(CAR_TOPIC, 1, SteadyMillis(ENDS_FRESH_MS)) == 5
    assert away.lately(CAR_TOPIC, 1, SteadyMillis(ENDS_FRESH_MS + 1)) is None
    assert away.lately(CAR_TOPIC, 0, SteadyMillis(ENDS_FRESH_MS + 200)) == 5
    assert away.lately(FAR, 0, SteadyMillis(0)) is None


def test_records_are_readable_up_to_the_largest_answer() -> None:
    """A late one is a lower bound."""
    found = Ends(SteadyMillis(0), {CAR_TOPIC: {0: Offset(5)}}, late={CAR_TOPIC: {0: Offset(3)}})
    assert found.readable(CAR_TOPIC, 0) == 5
    late = Ends(SteadyMillis(0), {}, late={CAR_TOPIC: {0: Offset(3)}})
    assert late.readable(CAR_TOPIC, 0) == 3
    assert late.readable(FAR, 0) is None


def test_ends_below_a_position_are_noticed() -> None:
    """By all that is written, not by what is visible."""
    found = answered(None, 0, 5, None)
    assert not found.are_below({at(CARS, 0): Offset(5), at(CARS, 1): Offset(9)})
    assert found.are_below({at(CARS, 0): Offset(6)})
