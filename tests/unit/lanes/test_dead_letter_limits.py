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


def dead_letter(at_ms: int, reason: str = "undecodable", offset: int = 0) -> Context:
    """A refused record of the stream `cars`, in a fragment whose box is `tolls`."""
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


def test_the_limit_is_accepted_and_one_more_is_not() -> None:
    """The error contains the stream, the counts by reason, the first places and the remedy."""
    limit = Limit("cars", 2, 60_000)
    after = count((limit,), {}, [dead_letter(1), dead_letter(2)], PLACE)
    assert after == {"cars": Refused(60_000, {0: 2})}
    more = [dead_letter(59_999, "empty_value", 8), dead_letter(3, offset=9), dead_letter(60_000)]
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
    after = count(
        (limit,),
        {},
        [dead_letter(59_999), dead_letter(60_000), dead_letter(-1 + 120_000 + 1)],
        PLACE,
    )
    assert after["cars"].windows == {0: 1, 1: 1, 2: 1}


def test_without_a_window_all_dead_letters_count() -> None:
    """With a limit of zero the first one stops the fragment."""
    with pytest.raises(TooManyDeadLettersError, match="stream cars has 1 dead letter, and bears"):
        count((Limit("cars", 0),), {}, [dead_letter(-1)], PLACE)
    after = count((Limit("cars", 2),), {}, [dead_letter(1), dead_letter(10**15)], PLACE)
    assert after == {"cars": Refused(None, {0: 2})}


def test_a_dead_letter_counts_where_it_was_refused_and_late_ones_nowhere() -> None:
    """A box counts failed computations, a stream everything else except late records."""
    limits = (Limit("cars", 9), Limit("tolls", 9), Limit("other", 0))
    dead_letters = [
        dead_letter(1),
        dead_letter(1, "evaluation_failed"),
        dead_letter(1, "late"),
        dead_letter(1),
    ]
    dead_letters.append(dead_letter(1, "partly_late"))
    after = count(limits, {}, dead_letters, PLACE)
    assert after == {"cars": Refused(None, {0: 2}), "tolls": Refused(None, {0: 1})}


def test_a_failed_result_counts_for_its_box() -> None:
    """It has no place."""
    failed = Context(
        "evaluation_failed", "told", BoxName("tolls"), None, "", None, None, None, Millis(5),
        NetworkVersion(1),
    )  # fmt: skip
    with pytest.raises(TooManyDeadLettersError, match=r"box tolls has .* a result of box tolls"):
        count((Limit("tolls", 0),), {}, [failed], PLACE)


def test_counts_of_another_window_length_are_dropped() -> None:
    """So are those without a limit; a higher limit continues the count."""
    before = {"cars": Refused(60_000, {0: 5}), "gone": Refused(None, {0: 1})}
    assert count((Limit("cars", 5, 60_000),), before, [], PLACE) == {"cars": before["cars"]}
    assert count((Limit("cars", 5, 1_000),), before, [dead_letter(7)], PLACE) == {
        "cars": Refused(1_000, {0: 1})
    }


def test_exceeding_a_limit_raised_meanwhile_needs_a_new_dead_letter() -> None:
    """A full window alone stops nothing: its dead letters were accepted before."""
    before = {"cars": Refused(None, {0: 50})}
    assert count((Limit("cars", 3),), before, [dead_letter(1, "late")], PLACE) == before
    with pytest.raises(TooManyDeadLettersError, match="51 dead letters"):
        count((Limit("cars", 3),), before, [dead_letter(1)], PLACE)


@given(
    st.lists(st.integers(0, 5_000), max_size=40),
    st.lists(st.integers(0, 40), max_size=5),
    st.integers(0, 6),
)
def test_the_limit_is_independent_of_batch_boundaries(
    times: list[int], cuts: list[int], most: int
) -> None:
    """The same records exceed it, or not, however they are divided into batches."""
    limit = Limit("cars", most, 1_000)
    dead_letters = [dead_letter(at) for at in times]
    edges = [0, *sorted(cuts), len(dead_letters)]

    def run(parts: Sequence[Sequence[Context]]) -> dict[str, Refused] | None:
        refused: dict[str, Refused] = {}
        try:
            for part in parts:
                refused = count((limit,), refused, part, PLACE)
        except TooManyDeadLettersError:
            return None
        return refused

    parts = [dead_letters[a:b] for a, b in pairwise(edges)]
    assert run(parts) == run([dead_letters])


def test_only_the_newest_windows_are_kept() -> None:
    """A marker stays small for any timestamps of records."""
    limit = Limit("cars", 1, 1)
    after = count((limit,), {}, [dead_letter(at) for at in range(WINDOWS_MAX + 10)], PLACE)
    assert sorted(after["cars"].windows) == list(range(10, WINDOWS_MAX + 10))
