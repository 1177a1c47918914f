import pytest

from pipeline.dead_letters.choose import LetterFilter, summary
from pipeline.ids import Millis, Offset
from tests.unit.dead_letters.support import NOW, letter


@pytest.mark.parametrize(
    ("matching", "matched"),
    [
        (LetterFilter(), [0, 1, 2]),
        (LetterFilter(reason="late"), [1]),
        (LetterFilter(box="other"), [2]),
        (LetterFilter(from_ms=Millis(NOW + 1)), [1, 2]),
        (LetterFilter(to_ms=Millis(NOW + 1)), [0]),
        (LetterFilter(reason="late", box="other"), []),
    ],
)
def test_a_letter_matches_when_all_conditions_do(
    matching: LetterFilter, matched: list[int]
) -> None:
    """A time range includes its beginning and not its end."""
    letters = [
        letter(0, appended=NOW),
        letter(1, appended=Millis(NOW + 1), reason="late"),
        letter(2, appended=Millis(NOW + 2), box="other"),
    ]
    assert [one.number[1] for one in letters if matching.matches(one)] == matched


def test_letters_are_counted_by_reason_the_most_frequent_first() -> None:
    """With the oldest and the newest append times, in any order of reading."""
    times = (NOW, Millis(NOW - 5), Millis(NOW + 5))
    letters = [
        letter(i, appended=times[i], reason="late" if i else "undecodable") for i in range(3)
    ]
    found = summary(letters, {letters[2].identity, (1, Offset(0), None)})
    assert (found.count, found.redriven) == (3, 1)
    assert list(found.reasons.items()) == [("late", 2), ("undecodable", 1)]
    assert (found.oldest_ms, found.newest_ms) == (NOW - 5, NOW + 5)


def test_an_empty_topic_has_no_times() -> None:
    """Nothing to count."""
    found = summary([], frozenset())
    assert (found.count, found.oldest_ms, found.newest_ms) == (0, None, None)
