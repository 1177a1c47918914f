"""Commit markers, boundary records and advance records as JSON bytes, each with its format version.

A reader accepts every version up to its own and refuses a newer one, since it cannot know what that
says. Fields that it does not know within a version it reads are left alone, so a field may be added
without a new version as long as its absence means what it meant before.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pipeline.errors import BrokenInvariantError
from pipeline.formats import WRITTEN, check
from pipeline.ids import BatchId, Epoch, Incarnation, Millis, Offset, StreamName, TopicName
from pipeline.lanes.limits import Refused
from pipeline.lanes.markers import CommitMarker, Totals
from pipeline.lanes.positions import InputPartition
from pipeline.lanes.signals import AdvanceRecord, BoundaryRecord

Number = TypeVar("Number", bound=int)


def encode_marker(marker: CommitMarker) -> bytes:
    """A marker as the value of its record."""
    return _encode(
        {
            "epoch": marker.epoch,
            "incarnation": marker.incarnation,
            "batch": marker.batch,
            "start": _nested(marker.start),
            "end": _nested(marker.end),
            "needed": _nested(marker.needed),
            "late_ms": marker.late_ms,
            "eviction_ms": marker.eviction_ms,
            "progress": _nested(marker.progress),
            "late_settled": marker.late_settled,
            "boundary_ms": marker.boundary_ms,
            "totals": {
                "records_in": marker.totals.records_in,
                "records_out": marker.totals.records_out,
                "dead_letters": marker.totals.dead_letters,
                "late_dropped": marker.totals.late_dropped,
            },
            "written_at_ms": marker.written_at_ms,
            "state": marker.state,
            **({"refused": _refused(marker.refused)} if marker.refused else {}),
            **({"letters": marker.letters} if marker.letters else {}),
            **({"failed": marker.failed} if marker.failed else {}),
        },
    )


def decode_marker(value: bytes, place: str) -> CommitMarker:
    """Read a marker; `place` says where it was found, for the error.

    Raises:
        NewerFormatError: a newer version of Medusa wrote it.
        BrokenInvariantError: it is damaged.
    """
    fields = _decode(value, "commit marker", place)
    totals = fields.inner("totals")
    return CommitMarker(
        epoch=Epoch(fields.number("epoch")),
        incarnation=Incarnation(fields.text("incarnation")),
        batch=BatchId(fields.number("batch")),
        start=fields.by_partition("start", Offset),
        end=fields.by_partition("end", Offset),
        needed=fields.by_partition("needed", Offset),
        late_ms=fields.instant("late_ms"),
        eviction_ms=fields.instant("eviction_ms"),
        progress=fields.by_partition("progress", Millis),
        late_settled=BatchId(fields.number("late_settled")),
        boundary_ms=fields.instant("boundary_ms"),
        totals=Totals(
            records_in=totals.number("records_in"),
            records_out=totals.number("records_out"),
            dead_letters=totals.number("dead_letters"),
            late_dropped=totals.number("late_dropped"),
        ),
        written_at_ms=Millis(fields.number("written_at_ms")),
        state=fields.text("state"),
        refused=fields.refused() if "refused" in fields.members else {},
        letters=fields.text("letters") if "letters" in fields.members else "",
        failed=fields.number("failed") if "failed" in fields.members else 0,
    )


def encode_boundary(record: BoundaryRecord) -> bytes:
    """A boundary as the value of its record; the record's key is the writer's name."""
    return _encode(
        {
            "writer": record.writer,
            "epoch": record.epoch,
            "boundary_ms": record.boundary_ms,
            "positions": {str(p): record.positions[p] for p in sorted(record.positions)},
        },
    )


def decode_boundary(value: bytes, place: str) -> BoundaryRecord:
    """Read a boundary record.

    Raises:
        NewerFormatError: a newer version of Medusa wrote it.
        BrokenInvariantError: it is damaged.
    """
    fields = _decode(value, "boundary record", place)
    return BoundaryRecord(
        writer=fields.text("writer"),
        epoch=Epoch(fields.number("epoch")),
        boundary_ms=Millis(fields.number("boundary_ms")),
        positions=fields.inner("positions").numbered(Offset),
    )


def encode_advance(record: AdvanceRecord) -> bytes:
    """An advance as the value of its record.

    A lane's query reads `incarnation` and `advance_ms` at the top level of the JSON object: these
    two names are part of the format.
    """
    return _encode({"incarnation": record.incarnation, "advance_ms": record.advance_ms})


def decode_advance(value: bytes, place: str) -> AdvanceRecord:
    """Read an advance record.

    Raises:
        NewerFormatError: a newer version of Medusa wrote it.
        BrokenInvariantError: it is damaged.
    """
    fields = _decode(value, "advance record", place)
    return AdvanceRecord(
        incarnation=Incarnation(fields.text("incarnation")),
        advance_ms=Millis(fields.number("advance_ms")),
    )


_FAR_MS = 2**63
"""What a query cannot read as a number."""


def heeded_ms(value: bytes | None, incarnation: Incarnation) -> Millis | None:
    """What an advance tells a lane; None if it is for another incarnation, or no advance."""
    try:
        told = json.loads(value or b"")
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or told.get("incarnation") != incarnation:
        return None
    at_ms = told.get("advance_ms")
    if not isinstance(at_ms, int) or isinstance(at_ms, bool) or abs(at_ms) >= _FAR_MS:
        return None
    return Millis(at_ms)


def _encode(fields: Mapping[str, object]) -> bytes:
    return json.dumps({"format": WRITTEN, **fields}, separators=(",", ":")).encode()


def _nested(values: Mapping[InputPartition, int]) -> dict[str, dict[str, dict[str, int]]]:
    """Input → topic → partition → value, in order, so that equal facts are equal bytes."""
    nested: dict[str, dict[str, dict[str, int]]] = {}
    for key in sorted(values):
        topics = nested.setdefault(key.input, {})
        topics.setdefault(key.topic, {})[str(key.partition)] = values[key]
    return nested


def _refused(found: Mapping[str, Refused]) -> dict[str, object]:
    return {
        name: {
            "within_ms": found[name].within_ms,
            "windows": {str(w): found[name].windows[w] for w in sorted(found[name].windows)},
        }
        for name in sorted(found)
    }


def _decode(value: bytes, what: str, place: str) -> "_Fields":
    try:
        found = json.loads(value)
    except ValueError as error:
        raise BrokenInvariantError(f"the {what} is not JSON", place=place) from error
    fields = _Fields(_members(found, what, place), what, place)
    version = fields.number("format")
    check(version, what, place)
    if version < 1:
        raise BrokenInvariantError(f"the {what} has the unknown format {version}", place=place)
    return fields


def _members(found: object, what: str, place: str) -> Mapping[str, object]:
    if not isinstance(found, dict):
        raise BrokenInvariantError(f"{what}: an object was expected", place=place)
    return found


@dataclass(frozen=True, slots=True)
class _Fields:
    """The members of one JSON object, read with their types checked."""

    members: Mapping[str, object]
    what: str
    place: str

    def number(self, name: str) -> int:
        return self._whole(self._member(name), name)

    def text(self, name: str) -> str:
        found = self._member(name)
        if not isinstance(found, str):
            raise self._damaged(name, "a text")
        return found

    def instant(self, name: str) -> Millis | None:
        found = self._member(name)
        return None if found is None else Millis(self._whole(found, name))

    def inner(self, name: str) -> "_Fields":
        what = f"{self.what}, {name}"
        return _Fields(_members(self._member(name), what, self.place), what, self.place)

    def numbered(self, kind: Callable[[int], Number]) -> dict[int, Number]:
        found: dict[int, Number] = {}
        for name in self.members:
            if not name.isdecimal():
                raise self._damaged(name, "a partition number")
            found[int(name)] = kind(self.number(name))
        return found

    def by_partition(
        self, name: str, kind: Callable[[int], Number]
    ) -> dict[InputPartition, Number]:
        inputs = self.inner(name)
        return {
            InputPartition(StreamName(stream), TopicName(topic), partition): value
            for stream in inputs.members
            for topic in inputs.inner(stream).members
            for partition, value in inputs.inner(stream).inner(topic).numbered(kind).items()
        }

    def refused(self) -> dict[str, Refused]:
        found = self.inner("refused")
        return {
            name: Refused(one.instant("within_ms"), one.inner("windows").numbered(int))
            for name in found.members
            for one in (found.inner(name),)
        }

    def _member(self, name: str) -> object:
        if name not in self.members:
            raise BrokenInvariantError(f"{self.what}: {name} is missing", place=self.place)
        return self.members[name]

    def _whole(self, found: object, name: str) -> int:
        if not isinstance(found, int) or isinstance(found, bool):
            raise self._damaged(name, "a whole number")
        return found

    def _damaged(self, name: str, expected: str) -> BrokenInvariantError:
        message = f"{self.what}: {name} should be {expected}"
        return BrokenInvariantError(message, place=self.place)
