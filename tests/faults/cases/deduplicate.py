"""Deduplication: the first of each run of readings of one kind."""

from collections.abc import Iterable, Mapping

from tests.faults.case import Case
from tests.faults.cases.outer_join import kind
from tests.faults.cases.readings import close, declared, feed, stream
from tests.faults.cases.stateless import number
from tests.faults.history import Expected, Fate
from tests.faults.letters import Accepted
from tests.faults.values import Columns

WITHIN_MS = 1_000
"""About the distance of readings of a kind: many repeat another one, and many do not."""


def _reference(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    """In order of event time, then of positions; event time never passes closing records."""
    records = [r for r in accepted.of("once", "readings") if r.fate is not Fate.CLOSING]
    last: dict[tuple[str, int], int] = {}
    rows = []
    for record in sorted(records, key=lambda r: (number(r, "at"), r.place)):
        at_ms, before = number(record, "at"), last.get(kind(record))
        if before is None or at_ms - before > WITHIN_MS:
            row = (*kind(record), number(record, "number"), at_ms)
            rows.append(Expected(row, at_ms, (record.place,)))
        last[kind(record)] = at_ms
    return {"once": rows}


DEDUPLICATE = Case(
    name="deduplicate",
    document=(
        "network: {name}\n"
        + declared("readings")
        + "boxes:\n"
        + "  kinds:\n"
        + "    map: readings\n"
        + "    select: {sensor: sensor, kind: value % 20, number: number, at: at}\n"
        + "  once: {deduplicate: kinds, by: [sensor, kind], within: 1s}\n"
        + "outputs: {once: {topic: {name}-once, partitions: 2}}\n"
    ),
    streams=(stream(),),
    feed=feed,
    close=close,
    reference=_reference,
    columns={"once": Columns(("sensor", "kind", "number", "at"), ("number",))},
)
