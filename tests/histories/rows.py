"""Row evaluation of the in-memory engine: records decoded, planned boxes in plain Python."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from brokers.records import KafkaRecord
from pipeline.boundaries.windows import next_end
from pipeline.ids import StreamName
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.filter import Filter
from pipeline.network.boxes.join import Join
from pipeline.network.boxes.map import Map
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.union import Union
from pipeline.network.model import Box, ExternalStream
from pipeline.planner.plan import Fragment
from pipeline.spark.query.lowered import Source
from schemas import wire

Values = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Row:
    """A row in a query: event time in milliseconds, columns, and its record."""

    at: int
    values: Values
    record: KafkaRecord


@dataclass(frozen=True, slots=True)
class Result:
    """A result row."""

    at: int
    values: Values
    key: bytes | None = None
    partition: int = -1


def judged(record: KafkaRecord, stream: Any, source: Source) -> Row | Reason | int:
    """A record as a row; the reason why it is invalid; or the id of an unknown schema."""
    framed = wire.split(record.value)
    if not isinstance(framed, wire.Framed):
        return Reason.NOT_WIRE_FORMAT
    assert isinstance(framed.schema, int)
    if framed.schema not in {writer.handle for writer in source.writers}:
        missing = framed.schema in source.missing
        return Reason.SCHEMA_NOT_FOUND if missing else framed.schema
    try:
        values = json.loads(framed.body)
    except ValueError:
        return Reason.UNDECODABLE
    if not isinstance(stream, ExternalStream):
        return Row(record.timestamp_ms, values, record)
    ahead_ms = source.event_time.ahead_ms  # None in a rebuild of what was accepted before
    if ahead_ms is not None and values["at"] > record.timestamp_ms + ahead_ms:
        return Reason.EVENT_TIME_AHEAD
    return Row(values["at"], values, record)


@lru_cache(10_000)
def compiled(sql: str) -> Callable[..., int]:
    """The expressions of the documents as functions of `row`, `left` and `right`."""
    text = re.sub(r"CAST\(([^()]+) AS [A-Z]+(?:\(\d+,\d+\))?\)", r"\1", sql)
    text = re.sub(r"`(left|right)`\.`(\w+)`", r"\1['\2']", text)
    text = re.sub(r"`(\w+)`", r"row['\1']", text)
    names = {"__builtins__": {}, "try_add": lambda one, other: one + other}
    return eval(f"lambda row=None, left=None, right=None: {text}", names)  # type: ignore[no-any-return]  # noqa: S307 - generated text


def through(box: Box, rows: Iterable[Row]) -> Iterator[Row]:
    """Evaluate a stateless box."""
    match box:
        case Filter():
            where = compiled(box.where.sql)
            yield from (row for row in rows if where(row=row.values))
        case Map():
            select = [(c.name, compiled(c.expression.sql)) for c in box.select]
            for row in rows:
                yield replace(row, values={name: f(row=row.values) for name, f in select})
        case Union():
            names = [column.name for column in box.columns]
            for row in rows:
                yield replace(row, values={name: row.values[name] for name in names})
        case _:
            raise AssertionError(f"the toy engine has no box of kind {box.kind}")


def downstream(fragment: Fragment, rows: Iterable[Row]) -> Iterable[Row]:
    """Evaluate the boxes after the stateful box."""
    box = fragment.stateful_box
    assert box is not None
    last = StreamName(box.name)
    for behind in fragment.boxes:
        if last in behind.inputs:
            rows = through(behind, rows)
            last = StreamName(behind.name)
    return rows


# --- state ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class State:
    """The state of a query, as a value.

    Args:
        windows: sums of `id` and `v` by window end and group.
        sides: the buffered rows of each side of a join.
    """

    windows: Mapping[tuple[int, int], tuple[int, ...]]
    sides: Mapping[str, tuple[Row, ...]]


EMPTY = State({}, {"left": (), "right": ()})


def window_end(box: Aggregate, at: int) -> int:
    """The end of the window that contains a time."""
    assert not isinstance(box.window, SessionWindow)
    return int(next_end(box.window, at))  # type: ignore[arg-type]


def too_late(fragment: Fragment, at: int, late_ms: int) -> bool:
    """Whether Spark drops a row by a watermark."""
    box = fragment.stateful_box
    return (window_end(box, at) if isinstance(box, Aggregate) else at) <= late_ms


def aggregated(
    box: Aggregate, state: State, rows: Iterable[Row], watermark: int
) -> tuple[State, list[Row]]:
    """Add rows to the state; returns it without ended windows, and the results of these."""
    windows = dict(state.windows)
    for row in rows:
        group = compiled(box.by[0].expression.sql)(row=row.values)
        at = window_end(box, row.at), group
        before = windows.get(at, tuple(0 for _ in box.aggregations))
        windows[at] = tuple(
            old + compiled(a.argument.sql)(row=row.values)
            for old, a in zip(before, box.aggregations, strict=True)
            if a.argument is not None
        )
    over = sorted(at for at in windows if at[0] <= watermark)
    found = [_closed(box, at, windows.pop(at)) for at in over]
    return replace(state, windows=windows), found


def _closed(box: Aggregate, at: tuple[int, int], sums: tuple[int, ...]) -> Row:
    end, group = at
    assert not isinstance(box.window, SessionWindow)
    made = {a.name: value for a, value in zip(box.aggregations, sums, strict=True)}
    values = {
        box.by[0].name: group,
        "window_start": end - box.window.size_ms,
        "window_end": end,
        **{c.name: compiled(c.expression.sql)(row=made) for c in box.compute},
    }
    return Row(end, values, _NO_RECORD)


_NO_RECORD = KafkaRecord("", -1, 0, 0, None, None)  # type: ignore[arg-type]


def joined(
    box: Join, state: State, new: Mapping[str, list[Row]], watermark: int
) -> tuple[State, list[Row]]:
    """Add rows to the state; returns it without rows beyond the bound, and the pairs."""
    pairs: list[Row] = []
    left, right = list(state.sides["left"]), list(state.sides["right"])
    for row in new.get("left", ()):
        pairs += [_pair(box, row, other) for other in right if _meet(box, row, other)]
        left.append(row)
    for row in new.get("right", ()):
        pairs += [_pair(box, other, row) for other in left if _meet(box, other, row)]
        right.append(row)
    lower, upper = box.bound.lower_ms, box.bound.upper_ms
    kept = {
        "left": tuple(row for row in left if row.at - lower >= watermark),
        "right": tuple(row for row in right if row.at + upper >= watermark),
    }
    return replace(state, sides=kept), pairs


def _meet(box: Join, left: Row, right: Row) -> bool:
    apart = left.at - right.at
    near = box.bound.lower_ms <= apart <= box.bound.upper_ms
    return near and all(left.values[one] == right.values[other] for one, other in box.on)


def _pair(box: Join, left: Row, right: Row) -> Row:
    values = {
        c.name: compiled(c.expression.sql)(left=left.values, right=right.values) for c in box.select
    }
    return Row(max(left.at, right.at), values, _NO_RECORD)
