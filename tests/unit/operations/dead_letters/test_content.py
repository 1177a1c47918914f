from dataclasses import replace

from pipeline.dead_letters.choose import LetterFilter
from pipeline.dead_letters.letter import read
from pipeline.operations.connections import Connections
from pipeline.operations.dead_letters.content import letter_content, newest_letters
from pipeline.planner.plan import Fragment
from tests.unit.dead_letters.support import letter, record


def test_the_newest_letters_come_last(connections: Connections, moving: Fragment) -> None:
    """At most the limit, of those that match."""
    found = newest_letters(moving, LetterFilter(), 2, connections)
    assert [one.number for one in found] == [(0, 1), (0, 2)]
    (late,) = newest_letters(moving, LetterFilter(reason="late"), 2, connections)
    assert late.number == (0, 1)


def test_a_value_that_is_not_avro_is_base64(connections: Connections) -> None:
    """With the reason."""
    content = letter_content(letter(), connections)
    assert (content.key, content.value, content.cause) == ("key", "dmFsdWU=", "")
    assert content.problem


def test_a_failed_result_has_the_values_that_it_was_to_be_computed_from(
    connections: Connections,
) -> None:
    """And they show the cause."""
    failed = record(
        reason="evaluation_failed",
        field="compute.mean",
        message="compute.mean cannot be computed: sum(speed) / count(speed)",
        **dict.fromkeys(("input", "topic", "partition", "offset")),
    )
    value = b'{"sum(speed)":7.50,"count(speed)":0}'
    content = letter_content(read(replace(failed, key=None, value=value)), connections)
    assert content.value == {"sum(speed)": 7.5, "count(speed)": 0}
    assert (content.problem, content.cause) == ("", "division by zero: count(speed) is 0")
