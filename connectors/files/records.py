"""Records in the bytes of a file: where each ends, and what it says. Pure.

A record of JSON lines ends with its line. One of CSV ends with the first line at whose end all
quotes are closed; if there is none within `RECORD_MAX` bytes, the line is broken and ends alone.
"""

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from connectors.source import Refused, Row
from schemas.logical import Native
from schemas.types import AvroType, Kind, Primitive, RecordType, UnionType

RECORD_MAX = 900_000
"""Bytes of a record; Kafka's default limit of a record is a little more."""
KEPT_BYTES = 10_000
"""Bytes of a longer one that its dead letter has."""
BOM = b"\xef\xbb\xbf"
_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
_WORDS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Ended:
    """A record that begins at `start` and ends before `end`; `lines`: how many it has."""

    start: int
    end: int
    lines: int


def ends_of(data: bytes, start: int, *, quoted: bool, complete: bool) -> Ended | None:
    """Where the record that begins at `start` ends; None: `data` does not have its end.

    Args:
        data: of a file, from anywhere on.
        start: of a record in it.
        quoted: whether a line may end inside of quotes: CSV.
        complete: whether nothing follows `data`, so that its last line has an end.
    """
    end, lines, first = start, 0, None
    while end < len(data) and end - start < RECORD_MAX:
        found = data.find(b"\n", end)
        if found < 0 and not complete:
            break
        end = found + 1 if found >= 0 else len(data)
        lines += 1
        first = first or Ended(start, end, 1)
        if not quoted or data.count(b'"', start, end) % 2 == 0:
            return Ended(start, end, lines)
    broken = end - start >= RECORD_MAX or (complete and end == len(data))
    return first if broken else None


@dataclass(frozen=True, slots=True)
class Reading:
    """How records are read: encoding and, of CSV, its columns and their types.

    Args:
        encoding: of the text.
        columns: of CSV; None: it is JSON lines.
        delimiter: of CSV.
        types: of the fields of the topic's schema; empty: every value of CSV is a text.
    """

    encoding: str
    columns: tuple[str, ...] | None
    delimiter: str
    types: dict[str, AvroType]

    def record(self, raw: bytes, place: str) -> Row | Refused | None:
        """What a record says; None: nothing, since it is blank."""
        if len(raw) > RECORD_MAX:
            message = f"the record has {len(raw)} bytes, at most {RECORD_MAX} are accepted"
            return Refused(raw[:KEPT_BYTES], place, "too-long", message)
        if not raw.strip():
            return None
        try:
            text = raw.decode(self.encoding)
        except UnicodeDecodeError as error:
            message = f"byte {error.start} of the record is not {self.encoding}"
            return Refused(raw, place, "encoding", message)
        if self.columns is None:
            return _json(text, raw, place)
        return self._csv(text, self.columns, raw, place)

    def _csv(self, text: str, columns: Sequence[str], raw: bytes, place: str) -> Row | Refused:
        try:
            values = fields_of(text, self.delimiter)
        except csv.Error as error:
            return Refused(raw, place, "broken", f"this is no line of CSV: {error}")
        if len(values) != len(columns):
            message = f"{len(values)} columns, where the first line has {len(columns)}"
            return Refused(raw, place, "columns", message)
        fields: dict[str, Native] = {
            name: typed(value, self.types.get(name))
            for name, value in zip(columns, values, strict=True)
        }
        return Row(fields, raw, place)


def fields_of(text: str, delimiter: str) -> list[str]:
    """The fields of a record of CSV.

    Raises:
        csv.Error: it is none.
    """
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    if len(rows) != 1:
        raise csv.Error("a quote is not closed, or does not begin its field")
    return rows[0]


def _json(text: str, raw: bytes, place: str) -> Row | Refused:
    try:
        found = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        return Refused(raw, place, "not-json", f"this is no JSON: {error}")
    if not isinstance(found, dict):
        return Refused(raw, place, "not-json", "this is no JSON object")
    return Row(found, raw, place)


def typed(text: str, type_: AvroType | None) -> Native:
    """A value of CSV as its type has it in JSON; a text that does not fit stays a text.

    An empty text is null where null is permitted.
    """
    if isinstance(type_, UnionType):
        kinds = [one.kind for one in type_.branches if isinstance(one, Primitive)]
        if not text and Kind.NULL in kinds:
            return None
        others = [one for one in type_.branches if getattr(one, "kind", None) is not Kind.NULL]
        values = (typed(text, one) for one in others)
        return next((value for value in values if not isinstance(value, str)), text)
    kind = type_.kind if isinstance(type_, Primitive) else None
    if kind in (Kind.INT, Kind.LONG) and _WHOLE.fullmatch(text):
        return int(text)
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        return _number(text)
    if kind is Kind.BOOLEAN:
        return _WORDS.get(text.lower(), text)
    return text


def _number(text: str) -> Native:
    try:
        number = Decimal(text.strip())
    except ArithmeticError:
        return text
    return number if number.is_finite() else text


def types_of(root: AvroType) -> dict[str, AvroType]:
    """The types of the fields of a record; empty for any other type."""
    return {one.name: one.type for one in root.fields} if isinstance(root, RecordType) else {}
