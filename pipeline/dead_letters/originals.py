"""Lookup of originals: the records that dead letters of as-of joins refer to. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Final

from brokers.records import KafkaRecord
from pipeline.dead_letters.letter import Letter, Place
from pipeline.ids import Offset, TopicName

LOOKUP_SIZE: Final = 500
"""Dead letters per lookup."""
_NEAR: Final = 200
"""Largest gap of offsets that is read through; a seek takes longer."""

Ranges = Mapping[TopicName, Mapping[int, tuple[Offset, Offset]]]
"""Topic → partition → first offset to read, and the end."""


def with_originals(
    letters: Iterable[Letter],
    needs_original: Callable[[Letter], bool],
    look_up: Callable[[Sequence[Letter]], Mapping[Place, KafkaRecord]],
) -> Iterator[Letter]:
    """The dead letters in their order, with `original` set where it is needed and still exists.

    Args:
        letters: any.
        needs_original: whether a dead letter, which has a `row`, needs its original.
        look_up: returns the originals that still exist of these dead letters, by their places.
    """
    chunk: list[Letter] = []
    for letter in letters:
        chunk.append(letter)
        if len(chunk) == LOOKUP_SIZE:
            yield from _looked_up(chunk, needs_original, look_up)
            chunk = []
    yield from _looked_up(chunk, needs_original, look_up)


def _looked_up(
    letters: Sequence[Letter],
    needs_original: Callable[[Letter], bool],
    look_up: Callable[[Sequence[Letter]], Mapping[Place, KafkaRecord]],
) -> Iterator[Letter]:
    incomplete = [letter for letter in letters if needs_original(letter)]
    found = look_up(incomplete) if incomplete else {}
    for letter in letters:
        original = None if letter.row is None else found.get(letter.row)
        yield letter if original is None else replace(letter, original=original)


def rounds(places: Iterable[Place]) -> Iterator[Ranges]:
    """Read ranges that cover all places: few and long, at most one per partition in a round."""
    ranges: dict[tuple[TopicName, int], list[tuple[Offset, Offset]]] = {}
    for place in sorted(places):
        of, end = ranges.setdefault((place.topic, place.partition), []), Offset(place.offset + 1)
        if of and place.offset - of[-1][1] < _NEAR:
            of[-1] = of[-1][0], end
        else:
            of.append((place.offset, end))
    for some in zip_longest(*ranges.values()):
        found: dict[TopicName, dict[int, tuple[Offset, Offset]]] = {}
        for (topic, partition), one in zip(ranges, some, strict=True):
            if one is not None:
                found.setdefault(topic, {})[partition] = one
        yield found
