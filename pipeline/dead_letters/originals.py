"""The records that dead letters name instead of holding them, looked up to be sent again. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Final

from brokers.records import KafkaRecord
from pipeline.dead_letters.letter import Letter, Place
from pipeline.ids import Offset, TopicName

AT_ONCE: Final = 500
"""So many letters are looked at before their records are looked up together."""
_NEAR: Final = 200
"""Offsets that are no further apart are read in one range: to begin anew takes longer."""

Ranges = Mapping[TopicName, Mapping[int, tuple[Offset, Offset]]]
"""Per partition the first offset to read and the one to stop before."""


def with_originals(
    letters: Iterable[Letter],
    wanted: Callable[[Letter], bool],
    look_up: Callable[[Sequence[Letter]], Mapping[Place, KafkaRecord]],
) -> Iterator[Letter]:
    """The letters in their order, those that are wanted with the records that they name.

    Args:
        letters: any.
        wanted: which of them; they name a record.
        look_up: finds the records of some of them; one that is gone is missing in the answer.
    """
    kept: list[Letter] = []
    for letter in letters:
        kept.append(letter)
        if len(kept) == AT_ONCE:
            yield from _looked_up(kept, wanted, look_up)
            kept = []
    yield from _looked_up(kept, wanted, look_up)


def _looked_up(
    letters: Sequence[Letter],
    wanted: Callable[[Letter], bool],
    look_up: Callable[[Sequence[Letter]], Mapping[Place, KafkaRecord]],
) -> Iterator[Letter]:
    asked = [letter for letter in letters if wanted(letter)]
    found = look_up(asked) if asked else {}
    for letter in letters:
        original = None if letter.row is None else found.get(letter.row)
        yield letter if original is None else replace(letter, original=original)


def rounds(places: Iterable[Place]) -> Iterator[Ranges]:
    """What is read one after the other to have the records of all places: few long ranges.

    Each round has one range of each partition at most.
    """
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
