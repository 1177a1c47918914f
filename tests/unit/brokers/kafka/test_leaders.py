import pytest

from brokers.kafka.leaders import (
    AGAIN_S,
    REFRESH_S,
    UNSETTLED_S,
    Begun,
    Found,
    Group,
    LeaderAnswer,
    LeaderEpochs,
    TopicLeaders,
    by_topic,
    grouping,
    highest,
    is_due,
    still_valid,
)
from pipeline.ids import Offset, TopicName

A, B, GONE, NEW = (TopicName(name) for name in ("a", "b", "gone", "new"))
FOUND: Found = {
    A: TopicLeaders("id-a", {0: 1, 1: 2}),
    B: TopicLeaders("id-b", {0: 1}),
    GONE: None,
}
BOTH = frozenset({A, B})


def test_partitions_are_grouped_by_leader() -> None:
    """With the ids of their topics; only of topics that are asked for."""
    found = grouping(BOTH, FOUND)
    assert found.groups == (
        Group(1, ((A, 0), (B, 0)), {A: "id-a", B: "id-b"}),
        Group(2, ((A, 1),), {A: "id-a"}),
    )
    assert found.places == {(A, 0), (A, 1), (B, 0)}
    assert found.settled
    assert grouping({B}, FOUND).places == {(B, 0)}


def test_a_partition_without_a_leader_exists() -> None:
    """It is in no group, and the topics are not settled."""
    found = grouping({A}, {A: TopicLeaders("id-a", {0: None, 1: 2})})
    assert [group.places for group in found.groups] == [((A, 1),)]
    assert found.places == {(A, 0), (A, 1)}
    assert not found.settled


@pytest.mark.parametrize("name", [GONE, NEW])
def test_other_topics_have_no_partitions(name: TopicName) -> None:
    """Those that do not exist, and those that are not described yet."""
    found = grouping({name, B}, FOUND)
    assert found.places == {(B, 0)}
    assert not found.settled


@pytest.mark.parametrize(
    ("age_s", "doubted", "settled", "due"),
    [
        (REFRESH_S, False, True, True),
        (REFRESH_S - 0.1, False, True, False),
        (UNSETTLED_S, False, False, True),
        (UNSETTLED_S - 0.1, False, False, False),
        (AGAIN_S, True, True, True),
        (AGAIN_S - 0.1, True, False, False),
    ],
)
def test_a_description_is_renewed_by_age(
    age_s: float, *, doubted: bool, settled: bool, due: bool
) -> None:
    """Sooner if something is missing; soonest if a leader returned an error."""
    last = Begun(BOTH, 100.0)
    assert is_due(100.0 + age_s, BOTH, last, doubted=doubted, settled=settled) is due


def test_new_topics_are_described_at_once() -> None:
    """No topics need no description."""
    last = Begun(frozenset({A}), 100.0)
    assert is_due(100.0, frozenset({A}), None, doubted=False, settled=True)
    assert is_due(100.0, BOTH, last, doubted=False, settled=True)
    assert not is_due(100.0, frozenset({A}), last, doubted=False, settled=True)
    assert not is_due(900.0, frozenset(), None, doubted=True, settled=False)


def test_offsets_of_a_topic_that_was_made_again_are_not_valid() -> None:
    """The new topic has another id; so are those of a topic that is gone."""
    asked = Group(1, ((A, 0), (B, 0)), {A: "id-a", B: "earlier id"})
    stable = {(A, 0): Offset(7), (B, 0): Offset(9)}
    answer = LeaderAnswer(stable, stable, answered=True)
    assert still_valid(answer, asked, FOUND) == {(A, 0): 7}
    assert still_valid(answer, asked, {A: None}) == {}


def test_answers_of_several_leaders_are_merged() -> None:
    """Of two lower bounds the higher one counts."""
    first, second = {(A, 0): Offset(3), (A, 1): Offset(5)}, {(A, 0): Offset(2), (B, 0): Offset(1)}
    assert highest([first, second]) == {(A, 0): 3, (A, 1): 5, (B, 0): 1}
    assert by_topic([{(A, 0): Offset(3)}, {(A, 1): Offset(5), (B, 0): Offset(1)}]) == {
        A: {0: 3, 1: 5},
        B: {0: 1},
    }


def test_what_a_former_leader_says_is_left_out() -> None:
    """It is cut off from the others, and its ends are lower; those of its other partitions count.

    A topic that was made again begins with the first epoch.
    """
    epochs = LeaderEpochs()

    def answer(group: Group, end: int, *of: int) -> LeaderAnswer:
        offsets = {place: Offset(end) for place in group.places}
        known = dict(zip(group.places, of, strict=False))
        return LeaderAnswer(offsets, offsets, answered=True, epochs=known)

    old = Group(1, ((A, 0), (A, 1)), {A: "id-a"})
    new = Group(2, ((A, 0),), {A: "id-a"})
    for group, *of in ((old, 4, 4), (new, 5), (new,), (old, 6, 4)):
        given = answer(group, 9, *of)
        assert epochs.newest(given, group) is given
    found = epochs.newest(answer(new, 7, 5), new)
    assert (found.stable, found.written) == ({}, {})
    assert found.moved
    found = epochs.newest(answer(old, 8, 5, 4), old)
    assert found.stable == found.written == {(A, 1): 8}
    again = Group(1, ((A, 0),), {A: "id-of-another"})
    assert epochs.newest(answer(again, 1, 0), again).stable == {(A, 0): 1}
