"""Traffic as it really comes: out of order, repeated, late, broken; each by a share of records."""

import heapq
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from connectors.generators.kind import Fields, Made

DISORDER_MS = (100, 3_000)
"""A record out of order is sent so much later than it would have been."""
REPEATED_MS = (50, 2_000)
"""A duplicate is sent so long after the record."""
LATE_MS = (60_000, 300_000)
"""The times of a late record lie so far back."""


class Breakage(Enum):
    """What is wrong with a bad record."""

    CUT = "cut off in the middle"
    MISSING = "without what has to be there"
    WRONG = "with something else in its place"
    NOISE = "bytes of something else"


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of the records, from 0 to 1 each."""

    disorder: float = 0.0
    duplicates: float = 0.0
    late: float = 0.0
    bad: float = 0.0


@dataclass(frozen=True, slots=True)
class Sent:
    """A record that is sent at `at_ms`; `breakage`: what is wrong with it; None: nothing."""

    at_ms: int
    fields: Fields
    breakage: Breakage | None = None


@dataclass(order=True, slots=True)
class _Held:
    at_ms: int
    number: int
    sent: Sent = field(compare=False)


def disturbed(
    made: Iterable[Made], times: tuple[str, ...], shares: Shares, seed: int
) -> Iterator[Sent]:
    """The records in the order in which they are sent.

    What happens to one record does not depend on what happens to others: the same seed with another
    share of duplicates has the same late records.

    Args:
        made: the records as they were made, in the order of their times.
        times: the fields of a record with times.
        shares: how many of them are disturbed.
        seed: decides which ones, and how.
    """
    held: list[_Held] = []
    number = 0
    for count, one in enumerate(made):
        while held and held[0].at_ms <= one.at_ms:
            yield heapq.heappop(held).sent
        for sent in _outcomes(one, times, shares, random.Random(f"{seed}/{count}")):
            if sent.at_ms <= one.at_ms:
                yield sent
            else:
                number += 1
                heapq.heappush(held, _Held(sent.at_ms, number, sent))
    while held:
        yield heapq.heappop(held).sent


def _outcomes(
    one: Made, times: tuple[str, ...], shares: Shares, chance: random.Random
) -> Iterator[Sent]:
    """What is sent of one record: itself, and perhaps a duplicate."""
    disordered, repeated, late, bad = (chance.random() for _ in range(4))
    held_ms, again_ms = chance.randint(*DISORDER_MS), chance.randint(*REPEATED_MS)
    back_ms = chance.randint(*LATE_MS)
    breakage = chance.choice(tuple(Breakage))
    at_ms = one.at_ms + (held_ms if disordered < shares.disorder else 0)
    fields = _moved(one.fields, times, back_ms) if late < shares.late else one.fields
    sent = Sent(at_ms, fields, breakage if bad < shares.bad else None)
    yield sent
    if repeated < shares.duplicates:
        yield Sent(at_ms + again_ms, sent.fields, sent.breakage)


def _moved(fields: Fields, times: tuple[str, ...], back_ms: int) -> Fields:
    """The same record, made so much earlier."""
    found = dict(fields)
    for name in times:
        at_ms = found[name]
        if isinstance(at_ms, int):
            found[name] = at_ms - back_ms
    return found
