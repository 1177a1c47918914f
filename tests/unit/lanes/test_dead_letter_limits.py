from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.ids import BoxName, Millis, NetworkVersion, Offset, StreamName, TopicName
from pipeline.lanes.dead_letter_limits import WINDOWS_MAX, TooManyDeadLettersError, count
from pipeline.lanes.dead_letters import Context
from pipeline.markers.refused import Refused
from pipeline.network.model import Limit

PLACE = "fragment roads.tolls"


def letter(at_ms: int, reason: str = "undecodable", offset: int = 0) -> Context:
    """A record of the stream `cars` that was refused, in a fragment whose box is `tolls`."""
    return Context(
        reason=reason,
        message="told",
        box=BoxName("tolls"),
        input=StreamName("cars"),
        port="",
        topic=TopicName("car-sightings"),
        partition=1,
        offset=Offset(offset),
        timestamp_ms=Millis(at_ms),
        version=NetworkVersion(1),
    )


def test_as_many_as_the_limit_are_borne_and_one_more_is_not() -> None:
    """The error names the stream, the counts by reason, the first places and what to do."""
    limit = Limit("cars", 2, 60_000)
    after = count((limit,), {}, [letter(1), letter(2)], PLACE)
    assert after == {"cars": Refused(60_000, {0: 2})}
    more = [letter(59_999, "empty_value", 8), letter(3, offset=9), letter(60_000)]
    with pytest.raises(TooManyDeadLettersError) as caught:
        count((limit,), after, more, PLACE)
    assert str(caught.value) == (
        "fragment roads.tolls: stream cars has 4 dead letters within 1m, and bears at most 2; its "
        "batch is not written: 1 empty_value, 1 undecodable, first topic car-sightings, partition "
        "1, offset 8: told; topic car-sightings, partition 1, offset 9: told\n"
        "  hint: mend the cause, then pause the fragment and resume it; or deploy a higher "
        "`stop_above` for stream cars, and they go to the dead letters."
    )


def test_a_window_ends_where_the_next_begins() -> None:
    """Records of different windows are not counted together."""
    limit = Limit("cars", 1, 60_000)
    after = count((limit,), {}, [letter(59_999), letter(60_000), letter(-1 + 120_000 + 1)], PLACE)
    assert after["cars"].windows == {0: 1, 1: 1, 2: 1}


def test_without_a_window_every_letter_counts_for_ever() -> None:
    """Zero of them are borne where the first has to stop the fragment."""
    with pytest.raises(TooManyDeadLettersError, match="stream cars has 1 dead letter, and bears"):
        count((Limit("cars", 0),), {}, [letter(-1)], PLACE)
    after = count((Limit("cars", 2),), {}, [letter(1), letter(10**15)], PLACE)
    assert after == {"cars": Refused(None, {0: 2})}


def test_a_letter_counts_where_it_was_refused_and_late_ones_nowhere() -> None:
    """A box counts what it could not compute, a stream everything else but late records."""
    limits = (Limit("cars", 9), Limit("tolls", 9), Limit("other", 0))
    letters = [letter(1), letter(1, "evaluation_failed"), letter(1, "late"), letter(1)]
    letters.append(letter(1, "partly_late"))
    after = count(limits, {}, letters, PLACE)
    assert after == {"cars": Refused(None, {0: 2}), "tolls": Refused(None, {0: 1})}


def test_a_failed_result_counts_for_its_box() -> None:
    """It has no place to name."""
    failed = Context(
        "evaluation_failed", "told", BoxName("tolls"), None, "", None, None, None, Millis(5),
        NetworkVersion(1),
    )  # fmt: skip
    with pytest.raises(TooManyDeadLettersError, match=r"box tolls has .* a result of box tolls"):
        count((Limit("tolls", 0),), {}, [failed], PLACE)


def test_what_was_counted_in_another_span_is_forgotten() -> None:
    """So is what has no limit any more; a higher limit goes on counting."""
    before = {"cars": Refused(60_000, {0: 5}), "gone": Refused(None, {0: 1})}
    assert count((Limit("cars", 5, 60_000),), before, [], PLACE) == {"cars": before["cars"]}
    assert count((Limit("cars", 5, 1_000),), before, [letter(7)], PLACE) == {
        "cars": Refused(1_000, {0: 1})
    }


def test_going_beyond_a_limit_that_was_raised_meanwhile_needs_a_new_letter() -> None:
    """A full window alone stops nothing: those letters were borne once."""
    before = {"cars": Refused(None, {0: 50})}
    assert count((Limit("cars", 3),), before, [letter(1, "late")], PLACE) == before
    with pytest.raises(TooManyDeadLettersError, match="51 dead letters"):
        count((Limit("cars", 3),), before, [letter(1)], PLACE)


@given(
    st.lists(st.integers(0, 5_000), max_size=40),
    st.lists(st.integers(0, 40), max_size=5),
    st.integers(0, 6),
)
def test_the_cuts_between_batches_decide_nothing(
    times: list[int], cuts: list[int], most: int
) -> None:
    """The same records are too many, or not, however they are cut into batches."""
    limit = Limit("cars", most, 1_000)
    letters = [letter(at) for at in times]
    edges = [0, *sorted(cuts), len(letters)]

    def run(parts: Sequence[Sequence[Context]]) -> dict[str, Refused] | None:
        known: dict[str, Refused] = {}
        try:
            for part in parts:
                known = count((limit,), known, part, PLACE)
        except TooManyDeadLettersError:
            return None
        return known

    pieces = [letters[a:b] for a, b in pairwise(edges)]
    assert run(pieces) == run([letters])


def test_only_the_newest_windows_are_remembered() -> None:
    """A marker stays small whatever timestamps records have."""
    limit = Limit("cars", 1, 1)
    after = count((limit,), {}, [letter(at) for at in range(WINDOWS_MAX + 10)], PLACE)
    assert sorted(after["cars"].windows) == list(range(10, WINDOWS_MAX + 10))
