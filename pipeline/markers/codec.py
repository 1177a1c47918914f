"""JSON codec of commit markers and signals (see `signals.py`), with format versions.

A reader accepts every version up to its own and rejects newer ones, whose meaning is undefined for
it. Unknown fields within an accepted version are ignored, so a field may be added without a new
version if its absence keeps its earlier meaning.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pipeline.errors import BrokenInvariantError
from pipeline.formats import WRITTEN, check
from pipeline.ids import (
    BatchId,
    Epoch,
    Incarnation,
    Millis,
    NetworkLife,
    NetworkVersion,
    Offset,
    SourceId,
    StreamName,
    TopicId,
    TopicName,
)
from pipeline.markers.commit_marker import CommitMarker, Judged, LeftOutput, Totals
from pipeline.markers.cut import Cut
from pipeline.markers.deploys import DeployId
from pipeline.markers.gap import Gap, Omitted
from pipeline.markers.positions import InputPartition, LeftSource, MarkedSource
from pipeline.markers.refused import Refused
from pipeline.markers.signals import ActivityRecord, BoundaryRecord
from schemas.json_value import Encodable, Json, JsonObject

Number = TypeVar("Number", bound=int)


def encode_marker(marker: CommitMarker) -> bytes:
    """Encode a marker as a record value: positions by source, topic id and partition.

    Raises:
        BrokenInvariantError: it has a position in a topic that none of its sources reads.
    """
    sources = marker.sources
    return _encode(
        {
            "epoch": marker.epoch,
            "incarnation": marker.incarnation,
            "batch": marker.batch,
            "sources": [_source(source) for source in sources],
            "start": _nested(marker.start, sources),
            "end": _nested(marker.end, sources),
            "needed": _nested(marker.needed, sources),
            "late_ms": marker.late_ms,
            "eviction_ms": marker.eviction_ms,
            "progress": _nested(marker.progress, sources),
            "left": [_left(one) for one in marker.left],
            "late_settled": marker.late_settled,
            "boundary_ms": marker.boundary_ms,
            "totals": {
                "records_in": marker.totals.records_in,
                "records_out": marker.totals.records_out,
                "dead_letters": marker.totals.dead_letters,
                "late_dropped": marker.totals.late_dropped,
                "skipped": marker.totals.skipped,
            },
            "written_at_ms": marker.written_at_ms,
            "state": marker.state,
            "refused": _refused(marker.refused),
            "letters": marker.letters,
            "letters_from": _numbered(marker.letters_from),
            "output": marker.output,
            "output_ends": _numbered(marker.output_ends),
            "judged": None if marker.judged is None else _judged(marker.judged),
            "plan": marker.plan,
            "chosen": marker.chosen,
            "anew": marker.anew,
            "decided": {"life": marker.decided.life, "version": marker.decided.version},
            "retired": marker.retired,
            "outputs_left": [_left_output(*one) for one in marker.outputs_left.items()],
            **({} if marker.gap is None else {"gap": _gap(marker.gap)}),
            **({} if marker.cut is None else {"cut": _cut(marker.cut, sources)}),
            **({"repeated": marker.repeated} if marker.repeated else {}),
        },
    )


def decode_marker(value: bytes, place: str) -> CommitMarker:
    """Decode a marker; `place` is its location, for error messages.

    Raises:
        NewerFormatError: a newer version of Medusa wrote it.
        BrokenInvariantError: it is damaged.
    """
    fields = _decode(value, "commit marker", place)
    totals = fields.inner("totals")
    sources = tuple(one.source() for one in fields.listed("sources"))
    return CommitMarker(
        epoch=Epoch(fields.number("epoch")),
        incarnation=Incarnation(fields.text("incarnation")),
        batch=BatchId(fields.number("batch")),
        sources=sources,
        start=fields.by_partition("start", sources, Offset),
        end=fields.by_partition("end", sources, Offset),
        needed=fields.by_partition("needed", sources, Offset),
        late_ms=fields.instant("late_ms"),
        eviction_ms=fields.instant("eviction_ms"),
        progress=fields.by_partition("progress", sources, Millis),
        left=tuple(one.left() for one in fields.listed("left")),
        late_settled=BatchId(fields.number("late_settled")),
        boundary_ms=fields.instant("boundary_ms"),
        totals=Totals(
            records_in=totals.number("records_in"),
            records_out=totals.number("records_out"),
            dead_letters=totals.number("dead_letters"),
            late_dropped=totals.number("late_dropped"),
            skipped=totals.number("skipped"),
        ),
        written_at_ms=Millis(fields.number("written_at_ms")),
        state=fields.text("state"),
        refused=fields.refused(),
        letters=fields.text("letters"),
        letters_from=fields.inner("letters_from").numbered(Offset),
        output=fields.text("output"),
        output_ends=fields.inner("output_ends").numbered(Offset),
        judged=fields.judged(),
        plan=fields.text("plan"),
        chosen=fields.flag("chosen"),
        anew=fields.text("anew"),
        decided=fields.inner("decided").deploy(),
        retired=fields.number("retired"),
        outputs_left={one.text("id"): one.left_output() for one in fields.listed("outputs_left")},
        gap=fields.inner("gap").gap() if "gap" in fields.members else None,
        cut=fields.cut(sources),
        repeated=fields.repeated(),
    )


def encode_boundary(record: BoundaryRecord) -> bytes:
    """Encode a boundary as a record value; the record's key is the writer's name."""
    return _encode(
        {
            "topic_id": record.topic_id,
            "writer": record.writer,
            "epoch": record.epoch,
            "boundary_ms": record.boundary_ms,
            "positions": _numbered(record.positions),
        },
    )


def decode_boundary(value: bytes, place: str) -> BoundaryRecord:
    """Decode a boundary record.

    Raises:
        NewerFormatError: a newer version of Medusa wrote it.
        BrokenInvariantError: it is damaged.
    """
    fields = _decode(value, "boundary record", place)
    return BoundaryRecord(
        topic_id=TopicId(fields.text("topic_id")),
        writer=fields.text("writer"),
        epoch=Epoch(fields.number("epoch")),
        boundary_ms=Millis(fields.number("boundary_ms")),
        positions=fields.inner("positions").numbered(Offset),
    )


def encode_activity(record: ActivityRecord) -> bytes:
    """Encode an activity report as a record value."""
    return _encode(
        {
            "topic_id": record.topic_id,
            "writer": record.writer,
            "epoch": record.epoch,
            "idle": record.idle,
        },
    )


def decode_activity(value: bytes, place: str) -> ActivityRecord:
    """Decode an activity record.

    Raises:
        NewerFormatError: a newer version of Medusa wrote it.
        BrokenInvariantError: it is damaged.
    """
    fields = _decode(value, "activity record", place)
    return ActivityRecord(
        topic_id=TopicId(fields.text("topic_id")),
        writer=fields.text("writer"),
        epoch=Epoch(fields.number("epoch")),
        idle=fields.flag("idle"),
    )


_DIGITS_MAX = 20
"""Longer than any partition or window number; Python refuses to parse thousands of digits."""


def _encode(fields: Mapping[str, Encodable]) -> bytes:
    return json.dumps({"format": WRITTEN, **fields}, separators=(",", ":")).encode()


def _nested(
    values: Mapping[InputPartition, int], sources: Sequence[MarkedSource]
) -> dict[str, dict[str, dict[str, int]]]:
    """Source → topic id → partition → value, in order, so that equal values have equal bytes."""
    known = {source.name: (source.id, dict(source.topics)) for source in sources}
    nested: dict[str, dict[str, dict[str, int]]] = {}
    for at in sorted(values):
        source, topics = known.get(at.input, (None, {}))
        topic_id = topics.get(at.topic)
        if source is None or topic_id is None:
            raise BrokenInvariantError(
                f"there is a position in a topic that no source reads: input {at.input}",
                place=f"topic {at.topic}, partition {at.partition}",
            )
        nested.setdefault(source, {}).setdefault(topic_id, {})[str(at.partition)] = values[at]
    return nested


def _source(source: MarkedSource) -> Mapping[str, Encodable]:
    return {
        "id": source.id,
        "name": source.name,
        "definition": source.definition,
        "timing": source.timing,
        "topics": [{"name": name, "id": topic_id} for name, topic_id in source.topics],
        "skipped_ms": source.skipped_ms,
        "settled_ms": source.settled_ms,
        "begun": source.begun,
    }


def _left(one: LeftSource) -> Mapping[str, Encodable]:
    sources = (one.source,)
    return {
        **_source(one.source),
        "end": _nested(one.end, sources),
        "needed": _nested(one.needed, sources),
        "progress": _nested(one.progress, sources),
    }


def _left_output(output: str, left: LeftOutput) -> Mapping[str, Encodable]:
    by_topic: dict[str, dict[str, int]] = {}
    for topic_id, partition in sorted(left.read):
        by_topic.setdefault(topic_id, {})[str(partition)] = left.read[topic_id, partition]
    return {"id": output, "promised_ms": left.promised_ms, "read": by_topic}


def _gap(gap: Gap) -> Mapping[str, Encodable]:
    return {
        "incarnation": gap.incarnation,
        "omitted": [
            {"topic": at.topic, "partition": at.partition, "begin": at.begin, "end": at.end}
            for at in gap.omitted
        ],
        "since_ms": gap.since_ms,
        "newest_ms": gap.newest_ms,
        "until_ms": gap.until_ms,
        "written_at_ms": gap.written_at_ms,
    }


def _cut(cut: Cut, sources: Sequence[MarkedSource]) -> Mapping[str, Encodable]:
    return {
        "id": cut.id,
        "end": _nested(cut.end, sources),
        "event_ms": cut.event_ms,
        "partitions": cut.partitions,
    }


def _numbered(values: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): values[partition] for partition in sorted(values)}


def _refused(found: Mapping[str, Refused]) -> Mapping[str, Encodable]:
    return {
        name: {
            "within_ms": found[name].within_ms,
            "windows": {str(w): found[name].windows[w] for w in sorted(found[name].windows)},
        }
        for name in sorted(found)
    }


def _judged(judged: Judged) -> Mapping[str, Encodable]:
    return {
        "records": judged.records,
        "bad": judged.bad,
        "late": judged.late,
        "refused": judged.refused,
        "failed": judged.failed,
        "results": judged.results,
    }


def _decode(value: bytes, what: str, place: str) -> "_Fields":
    try:
        found = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise BrokenInvariantError(f"the {what} is not JSON", place=place) from error
    fields = _Fields(_members(found, what, place), what, place)
    version = fields.number("format")
    check(version, what, place)
    if version < 1:
        raise BrokenInvariantError(f"the {what} has the unknown format {version}", place=place)
    return fields


def _members(found: Json, what: str, place: str) -> JsonObject:
    if not isinstance(found, dict):
        raise BrokenInvariantError(f"{what}: an object was expected", place=place)
    return found


@dataclass(frozen=True, slots=True)
class _Fields:
    """The members of one JSON object, read with their types checked."""

    members: JsonObject
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
            if not name.isdecimal() or len(name) > _DIGITS_MAX:
                raise self._damaged(name, "a partition number")
            found[int(name)] = kind(self.number(name))
        return found

    def listed(self, name: str) -> list["_Fields"]:
        found, what = self._member(name), f"{self.what}, {name}"
        if not isinstance(found, list):
            raise self._damaged(name, "a list")
        return [_Fields(_members(one, what, self.place), what, self.place) for one in found]

    def deploy(self) -> DeployId:
        return DeployId(NetworkLife(self.text("life")), NetworkVersion(self.number("version")))

    def source(self) -> MarkedSource:
        topics = self.listed("topics")
        if not topics:
            raise self._damaged("topics", "a list that is not empty")
        return MarkedSource(
            id=SourceId(self.text("id")),
            name=StreamName(self.text("name")),
            definition=self.text("definition"),
            timing=self.text("timing"),
            topics=tuple((TopicName(t.text("name")), TopicId(t.text("id"))) for t in topics),
            skipped_ms=self.instant("skipped_ms"),
            settled_ms=self.instant("settled_ms"),
            begun=self.flag("begun"),
        )

    def left(self) -> LeftSource:
        source = self.source()
        return LeftSource(
            source=source,
            end=self.by_partition("end", (source,), Offset),
            needed=self.by_partition("needed", (source,), Offset),
            progress=self.by_partition("progress", (source,), Millis),
        )

    def left_output(self) -> LeftOutput:
        by_topic = self.inner("read")
        return LeftOutput(
            promised_ms=self.instant("promised_ms"),
            read={
                (TopicId(topic_id), partition): offset
                for topic_id in by_topic.members
                for partition, offset in by_topic.inner(topic_id).numbered(Offset).items()
            },
        )

    def gap(self) -> Gap:
        return Gap(
            incarnation=Incarnation(self.text("incarnation")),
            omitted=tuple(
                Omitted(
                    TopicName(one.text("topic")),
                    one.number("partition"),
                    Offset(one.number("begin")),
                    Offset(one.number("end")),
                )
                for one in self.listed("omitted")
            ),
            since_ms=self.instant("since_ms"),
            newest_ms=Millis(self.number("newest_ms")),
            until_ms=Millis(self.number("until_ms")),
            written_at_ms=Millis(self.number("written_at_ms")),
        )

    def cut(self, sources: Sequence[MarkedSource]) -> Cut | None:
        if "cut" not in self.members:  # there is none
            return None
        found = self.inner("cut")
        return Cut(
            id=found.text("id"),
            end=found.by_partition("end", sources, Offset),
            event_ms=found.instant("event_ms"),
            partitions=found.number("partitions"),
        )

    def repeated(self) -> tuple[str, ...]:
        found = self.members.get("repeated", [])  # there are none
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise self._damaged("repeated", "a list of texts")
        return tuple(str(one) for one in found)

    def by_partition(
        self, name: str, sources: Sequence[MarkedSource], kind: Callable[[int], Number]
    ) -> dict[InputPartition, Number]:
        """Values keyed by the names of their sources and topics in the same marker."""
        known = {
            (source.id, topic_id): (source.name, topic)
            for source in sources
            for topic, topic_id in source.topics
        }
        found, by_source = {}, self.inner(name)
        for source in by_source.members:
            by_topic = by_source.inner(source)
            for topic_id in by_topic.members:
                names = known.get((SourceId(source), TopicId(topic_id)))
                if names is None:
                    raise self._damaged(name, "positions in topics that its sources read")
                for partition, value in by_topic.inner(topic_id).numbered(kind).items():
                    found[InputPartition(*names, partition)] = value
        return found

    def refused(self) -> dict[str, Refused]:
        found = self.inner("refused")
        return {
            name: Refused(one.instant("within_ms"), one.inner("windows").numbered(int))
            for name in found.members
            for one in (found.inner(name),)
        }

    def judged(self) -> Judged | None:
        if self._member("judged") is None:
            return None
        found = self.inner("judged")
        results = found.members.get("results")  # earlier versions do not write it
        return Judged(
            records=found.number("records"),
            bad=found.number("bad"),
            late=found.flag("late"),
            refused=found.number("refused"),
            failed=found.number("failed"),
            results=None if results is None else found.number("results"),
        )

    def flag(self, name: str) -> bool:
        found = self._member(name)
        if not isinstance(found, bool):
            raise self._damaged(name, "true or false")
        return found

    def _member(self, name: str) -> Json:
        if name not in self.members:
            raise BrokenInvariantError(f"{self.what}: {name} is missing", place=self.place)
        return self.members[name]

    def _whole(self, found: Json, name: str) -> int:
        if not isinstance(found, int) or isinstance(found, bool):
            raise self._damaged(name, "a whole number")
        return found

    def _damaged(self, name: str, expected: str) -> BrokenInvariantError:
        return BrokenInvariantError(f"{self.what}: {name} should be {expected}", place=self.place)
