"""Records as `medusa tail` prints them: lines and data. Pure."""

import json
from collections.abc import Mapping

from rich.text import Text

from pipeline.cli.times import time_text
from pipeline.operations.records.decoding import DecodedRecord
from pipeline.operations.records.tail_tentative import NO_OFFSET, Mark, MarkedRecord
from schemas.json_value import Json, JsonObject

_STYLES: Mapping[Mark, str] = {
    Mark.TENTATIVE: "yellow",
    Mark.STABLE: "",
    Mark.CONFIRMED: "green",
    Mark.REPLACED: "cyan",
    Mark.UNDONE: "red",
    Mark.DONE: "dim",
}
_WIDTH = max(len(mark.value) for mark in Mark)


def record_data(one: DecodedRecord) -> JsonObject:
    """A record for programs."""
    record = one.record
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": None if record.offset == NO_OFFSET else record.offset,
        "timestamp": _time(one),
        "key": one.key,
        "value": one.value,
        **({"headers": one.headers} if record.headers else {}),
        **({"problem": one.problem} if one.problem else {}),
    }


def record_line(one: DecodedRecord) -> str:
    """A record as a line: time, place, key, value."""
    value = one.value if isinstance(one.value, str) else _compact(one.value)
    key = one.key if isinstance(one.key, str) else _compact(one.key)
    offset = "-" if one.record.offset == NO_OFFSET else one.record.offset
    place = f"{_time(one) or '-'}  {one.record.partition}@{offset}"
    problem = f"  ({one.problem})" if one.problem else ""
    return f"{place}  {key}  {value}{problem}"


def marked_data(found: MarkedRecord, one: DecodedRecord | None) -> JsonObject:
    """A record with its mark for programs; `one`: decoded, None: it is the end of a generation."""
    return {
        "mark": found.mark.value,
        **({"generation": found.generation} if found.generation else {}),
        **({} if found.corrects is None else {"corrects": found.corrects}),
        **({} if one is None else record_data(one)),
    }


def marked_line(found: MarkedRecord, one: DecodedRecord | None) -> Text:
    """A record with its mark as a line; on a terminal the mark has a colour."""
    settled = f"all results of {found.generation} are settled"
    rest = settled if one is None else record_line(one)
    style = _STYLES[found.mark]
    return Text.assemble((f"{found.mark.value:<{_WIDTH}}", style), f"  {rest}")


def _time(one: DecodedRecord) -> str | None:
    at_ms = one.record.timestamp_ms
    return time_text(at_ms) if at_ms >= 0 else None


def _compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
