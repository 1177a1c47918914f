"""Generators of realistic records: out of order, some late, some undecodable. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random

from tests.faults.case import Fed
from tests.faults.history import Fate, Value

UNKNOWN_SCHEMA = b"\x00\x00\x0f\x42\x40"
"""The prefix of a schema id that no registry of the tests assigns."""
LATE_SHARE, BAD_SHARE = 0.02, 0.02
LATE_BY_MAX_MS = 10_000
EDGE_SHARE = 0.05
"""Share of records exactly at the limit of their partition's lateness, or at a window boundary."""
WRONG_CLOCK_SHARE = 0.1
WRONG_CLOCKS = (
    (-5 * 3_600_000, True, Fate.MAYBE_LATE),
    (-2 * 3_600_000, False, Fate.BAD),
    (-30 * 60_000, False, Fate.GOOD),
    (50 * 60_000, False, Fate.GOOD),
)
"""Offset of a clock, whether event time is taken from it, and the fate of the record: one whose
event time is an hour after its timestamp is a dead letter. A broker refuses records of a clock
that is more than an hour fast."""
FAR_AHEAD_MS = 4_000_000_000_000
"""In the year 2096, beyond every `ahead`."""


def tombstone(_: bytes) -> None:
    """No value at all."""


def plain_text(_: bytes) -> bytes:
    """Text instead of the wire format."""
    return b"plain text"


def cut_off(value: bytes) -> bytes:
    """A truncated value in the wire format."""
    return value[:7]


def foreign_schema(value: bytes) -> bytes:
    """A schema id that is not in the registry."""
    return UNKNOWN_SCHEMA + value[5:]


POISON: tuple[Callable[[bytes], bytes | None], ...] = (
    tombstone,
    plain_text,
    cut_off,
    foreign_schema,
)


@dataclass(slots=True)
class Clocks:
    """The event time of each partition of a stream; records are around it, within the lateness.

    Args:
        random: random generator.
        start_ms: the first event time of all partitions.
        lateness_ms: as in the document.
        step_ms: the largest advance of a partition by one record.
    """

    random: Random
    start_ms: int
    lateness_ms: int
    step_ms: int = 40
    _largest: dict[int, int] = field(default_factory=dict)

    def next(self, partition: int) -> tuple[int, Fate]:
        """The event time of the partition's next record, and whether it may be late."""
        largest = self._largest.get(partition, self.start_ms)
        chance = self.random.random()
        if chance < LATE_SHARE:
            behind = self.lateness_ms + 1 + self.random.randrange(LATE_BY_MAX_MS)
            return largest - behind, Fate.MAYBE_LATE
        if chance < LATE_SHARE + EDGE_SHARE:
            edge = largest - self.lateness_ms
            on_the_second = -(-edge // 1_000) * 1_000
            return self.random.choice((edge, max(edge, on_the_second))), Fate.GOOD
        moved = self.random.randrange(self.step_ms)
        at_ms = largest + moved - self.random.randrange(self.lateness_ms) * (moved % 2)
        self._largest[partition] = max(largest, at_ms)
        return at_ms, Fate.GOOD

    def now(self, partition: int) -> int:
        """The largest event time of a partition so far, which is never late and no advance."""
        return self._largest.get(partition, self.start_ms)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Generator settings of one stream.

    Args:
        stream: its name.
        event_time: its field.
        keys: of the records; None for no key.
        fields: the other fields, from a random generator and a sequence number.
        partitions: their number.
        lateness_ms: as in the document.
        spoil_fields: values with which a record cannot be computed; empty: there are none.
    """

    stream: str
    event_time: str
    keys: tuple[str | None, ...]
    fields: Callable[[Random, str, int], dict[str, Value]]
    partitions: int = 2
    lateness_ms: int = 1_000
    spoil_fields: tuple[tuple[str, Value], ...] = ()


def mixed(random: Random, start_ms: int, recipes: tuple[Recipe, ...]) -> Iterator[Fed]:
    """Endless records of some streams in random order."""
    clocks = [Clocks(random, start_ms, recipe.lateness_ms) for recipe in recipes]
    number = 0
    while True:
        which = random.randrange(len(recipes))
        number += 1
        yield _made(random, recipes[which], clocks[which], number)


def wrong_clocks(random: Random, recipe: Recipe, records: Iterator[Fed]) -> Iterator[Fed]:
    """The same records, some of them from producers whose clocks are wrong by up to hours."""
    for fed in records:
        if fed.fate is not Fate.GOOD or random.random() >= WRONG_CLOCK_SHARE:
            yield fed
            continue
        clock_ms, also_event_time, fate = random.choice(WRONG_CLOCKS)
        fields, at_ms = dict(fed.fields), fed.fields[recipe.event_time]
        if also_event_time and isinstance(at_ms, int):
            fields[recipe.event_time] = at_ms + clock_ms
        yield replace(fed, fields=fields, clock_ms=clock_ms, fate=fate)


def closing(recipe: Recipe, at_ms: int) -> Iterator[Fed]:
    """One record per partition of a stream, of a far later event time and a separate group."""
    for partition in range(recipe.partitions):
        name = f"closing-{recipe.stream}-{partition}"
        fields = {**recipe.fields(Random(0), name, -1 - partition), recipe.event_time: at_ms}
        yield Fed(recipe.stream, partition, name.encode(), fields, Fate.CLOSING)


def _made(random: Random, recipe: Recipe, clocks: Clocks, number: int) -> Fed:
    key = random.choice(recipe.keys)
    name = key if key is not None else "nobody"
    # A key has one partition, as with any producer; without a key the partition is random.
    partition = (
        recipe.keys.index(key) % recipe.partitions
        if key is not None
        else random.randrange(recipe.partitions)
    )
    fields = recipe.fields(random, name, number)
    encoded = None if key is None else key.encode()
    if random.random() < BAD_SHARE:
        fields[recipe.event_time] = clocks.now(partition)
        return _bad(random, recipe, Fed(recipe.stream, partition, encoded, fields, Fate.BAD))
    at_ms, fate = clocks.next(partition)
    return Fed(recipe.stream, partition, encoded, {**fields, recipe.event_time: at_ms}, fate)


def _bad(random: Random, recipe: Recipe, good: Fed) -> Fed:
    """A record that must be refused: for its bytes, its time, or a failed computation."""
    way = random.randrange(len(POISON) + 1 + bool(recipe.spoil_fields))
    if way < len(POISON):
        return replace(good, spoil=POISON[way])
    if way == len(POISON):
        return replace(good, fields={**good.fields, recipe.event_time: FAR_AHEAD_MS})
    return replace(good, fields={**good.fields, **dict(recipe.spoil_fields)})
