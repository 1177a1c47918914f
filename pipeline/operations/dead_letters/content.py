"""The newest dead letters, decoded, with the cause of a result that could not be computed."""

import heapq
from dataclasses import dataclass

from pipeline.dead_letters.choose import LetterFilter
from pipeline.dead_letters.letter import Letter
from pipeline.operations.connections import Connections
from pipeline.operations.dead_letters.letters import letters_of
from pipeline.operations.records.decoding import decode_record
from pipeline.planner.plan import Fragment
from schemas.json_value import Json


@dataclass(frozen=True, slots=True)
class LetterContent:
    """Decoded key and value of a dead letter, as JSON.

    Args:
        key: decoded; text where it is not Avro.
        value: decoded; base64 where that failed; the input values of a failed result.
        problem: why key or value could not be decoded; "" for none.
        cause: why the result could not be computed, by these values; "" if they do not show it.
    """

    key: Json
    value: Json
    problem: str
    cause: str


def newest_letters(
    fragment: Fragment, matching: LetterFilter, limit: int, connections: Connections
) -> tuple[Letter, ...]:
    """The newest dead letters of a fragment that match, at most `limit`, the newest last.

    Raises:
        RefusedError: the dead-letter topic does not exist.
        UnavailableError, RetryError: Kafka does not answer, or the end was not reached.
    """
    found = (letter for letter in letters_of(fragment, connections) if matching.matches(letter))
    return tuple(reversed(heapq.nlargest(limit, found, key=_order)))


def letter_content(letter: Letter, connections: Connections) -> LetterContent:
    """Decode a dead letter."""
    found = decode_record(letter.record, connections.registry)
    values = letter.computed_from
    if values is None:
        return LetterContent(found.key, found.value, found.problem, "")
    # It imports sqlglot, which takes a third of a second.
    from pipeline.network.causes import cause  # noqa: PLC0415

    return LetterContent(found.key, dict(values), "", cause(letter.expression, values))


def _order(letter: Letter) -> tuple[int, ...]:
    return (letter.appended_ms, *letter.number)
