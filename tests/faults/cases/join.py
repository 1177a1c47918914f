"""A join of two streams within a bound of event time."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from random import Random

from tests.faults.case import Case, Fed
from tests.faults.cases.readings import declared, recipe, stream
from tests.faults.cases.stateless import number, text
from tests.faults.history import Expected, Sent
from tests.faults.letters import Accepted
from tests.faults.traffic import closing, mixed
from tests.faults.values import Columns

READ = (recipe("lefts"), recipe("rights"))
BEFORE_MS, AFTER_MS = 50, 150
"""Bounds of the left row's time before and after the right one's; inclusive."""
BOUND = "{before: 50ms, after: 150ms}"
COLUMNS = Columns(("sensor", "one", "other"), ("one", "other"))


def pairs(
    lefts: Iterable[Sent],
    rights: Iterable[Sent],
    before_ms: int = BEFORE_MS,
    after_ms: int = AFTER_MS,
    on: Callable[[Sent], Hashable] = lambda record: text(record, "sensor"),
) -> Iterator[tuple[Sent, Sent]]:
    """The pairs of one key, by default the sensor, with event times within the bound."""
    waiting: defaultdict[Hashable, list[Sent]] = defaultdict(list)
    for record in sorted(rights, key=_at):
        waiting[on(record)].append(record)
    for left in lefts:
        others = waiting.get(on(left), [])
        first = bisect_left(others, _at(left) - after_ms, key=_at)
        last = bisect_right(others, _at(left) + before_ms, key=_at)
        for right in others[first:last]:
            yield left, right


def event_ms(pair: tuple[Sent, Sent]) -> int:
    """The event time of a pair: that of its later row."""
    return max(_at(record) for record in pair)


def _reference(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    rows = [
        Expected(
            (text(left, "sensor"), number(left, "number"), number(right, "number")),
            event_ms((left, right)),
            (left.place, right.place),
        )
        for left, right in pairs(
            accepted.of("pairs", "lefts", "left"), accepted.of("pairs", "rights", "right")
        )
    ]
    return {"pairs": rows}


def _at(record: Sent) -> int:
    return number(record, "at")


def feed(random: Random, start_ms: int) -> Iterator[Fed]:
    """Records of both sides in random order."""
    return mixed(random, start_ms, READ)


def close(at_ms: int) -> Iterator[Fed]:
    """Close both sides."""
    for side in READ:
        yield from closing(side, at_ms)


PAIRS = (
    "  pairs:\n"
    f"    join: {{left: lefts, right: rights, on: [sensor], within: {BOUND}}}\n"
    "    select: {sensor: sensor, one: left.number, other: right.number}\n"
)
JOIN = Case(
    name="join",
    document=(
        "network: {name}\n"
        + declared("lefts", "rights")
        + "boxes:\n"
        + PAIRS
        + "outputs: {pairs: {topic: {name}-pairs, partitions: 2}}\n"
    ),
    streams=(stream("lefts"), stream("rights")),
    feed=feed,
    close=close,
    reference=_reference,
    columns={"pairs": COLUMNS},
)
