"""An as-of join: each reading with the latest one of its kind on the other side."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping

from tests.faults.case import Case
from tests.faults.cases.join import close, feed
from tests.faults.cases.outer_join import kind
from tests.faults.cases.readings import declared, stream
from tests.faults.cases.stateless import number
from tests.faults.history import Expected, Fate, Place, Sent
from tests.faults.letters import Accepted
from tests.faults.values import Columns

WITHIN_MS = 800
"""About the distance of readings of a kind: for many the latest one is too old."""


def _reference(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    """Closing records have no results, since event time never passes them."""
    versions: defaultdict[tuple[str, int], list[Sent]] = defaultdict(list)
    for record in sorted(accepted.of("known", "rights", "right"), key=_order):
        versions[kind(record)].append(record)
    rows = []
    for left in accepted.of("known", "lefts", "left"):
        if left.fate is Fate.CLOSING:
            continue
        at_ms, others = number(left, "at"), versions[kind(left)]
        before = bisect_right(others, at_ms, key=_at)
        holds = before > 0 and at_ms - _at(others[before - 1]) <= WITHIN_MS
        other = number(others[before - 1], "number") if holds else None
        row = (*kind(left), number(left, "number"), other)
        rows.append(Expected(row, at_ms, (left.place,)))
    return {"known": rows}


def _at(record: Sent) -> int:
    return number(record, "at")


def _order(record: Sent) -> tuple[int, Place]:
    return _at(record), record.place


AS_OF = Case(
    name="as_of",
    document=(
        "network: {name}\n"
        + declared("lefts", "rights")
        + "boxes:\n"
        + "  one: {map: lefts, select: {sensor: sensor, kind: value % 20, number: number}}\n"
        + "  other: {map: rights, select: {sensor: sensor, kind: value % 20, number: number}}\n"
        + "  known:\n"
        + "    as_of: {left: one, right: other, on: [sensor, kind], within: 800ms, how: left}\n"
        + "    select: {sensor: sensor, kind: kind, one: left.number, other: right.number}\n"
        + "outputs: {known: {topic: {name}-known, partitions: 2}}\n"
    ),
    streams=(stream("lefts"), stream("rights")),
    feed=feed,
    close=close,
    reference=_reference,
    columns={"known": Columns(("sensor", "kind", "one", "other"), ("one",))},
)
