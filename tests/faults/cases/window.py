"""An aggregate over tumbling windows."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from random import Random

from tests.faults.case import Case, Fed
from tests.faults.cases.readings import READ, close, declared, feed, stream
from tests.faults.cases.stateless import number, text
from tests.faults.history import Expected, Fate, Sent
from tests.faults.letters import Accepted
from tests.faults.traffic import wrong_clocks
from tests.faults.values import Columns

WINDOW_MS = 1_000
COLUMNS = Columns(
    ("sensor", "window_start", "window_end", "n", "total", "most"), ("sensor", "window_end")
)


def windows(records: Iterable[Sent], size_ms: int) -> dict[tuple[str, int], list[Sent]]:
    """The records of each sensor and window end, without closing ones."""
    groups: defaultdict[tuple[str, int], list[Sent]] = defaultdict(list)
    for record in records:
        if record.fate is not Fate.CLOSING:
            at_ms = number(record, "at")
            groups[text(record, "sensor"), at_ms - at_ms % size_ms + size_ms].append(record)
    return dict(groups)


def counted(accepted: Iterable[Sent]) -> list[Expected]:
    """A row for each sensor and window, from the accepted records."""
    rows = []
    for (sensor, end), records in windows(accepted, WINDOW_MS).items():
        values = [number(record, "value") for record in records]
        row = (sensor, end - WINDOW_MS, end, len(values), sum(values), max(values))
        sources = tuple(record.place for record in records)
        rows.append(Expected(row, end, sources, ((sensor,), end)))
    return rows


def _reference(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    return {"counts": counted(accepted.of("counts", "readings"))}


def _feed_with_wrong_clocks(random: Random, start_ms: int) -> Iterator[Fed]:
    return wrong_clocks(random, READ, feed(random, start_ms))


def _document(streams: str) -> str:
    return (
        "network: {name}\n"
        + streams
        + "boxes:\n"
        + "  counts:\n"
        + "    aggregate: readings\n"
        + "    window: 1s\n"
        + "    by: [sensor]\n"
        + "    compute: {n: count(*), total: sum(value), most: max(value)}\n"
        + "outputs: {counts: {topic: {name}-counts, partitions: 2}}\n"
    )


WINDOW = Case(
    name="window",
    document=_document(declared("readings")),
    streams=(stream(),),
    feed=feed,
    close=close,
    reference=_reference,
    columns={"counts": COLUMNS},
)

IDLE_AFTER_S = 20
"""Shorter than the longest fault, and longer than a feed pauses on a busy machine."""
WINDOW_WITH_IDLENESS = replace(
    WINDOW,
    name="window_idle",
    document=_document(declared("readings", silence=f"idle_after: {IDLE_AFTER_S}s")),
)
"""An unreachable partition is not idle: a record sent in time is never late here either."""
WINDOW_OF_WRONG_CLOCKS = replace(WINDOW, name="window_clocks", feed=_feed_with_wrong_clocks)
"""A record's timestamp by its producer's clock moves no window and loses no record."""
