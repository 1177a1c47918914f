"""Lowering of a fragment to plain data in Spark's terms; `emit.py` makes no decisions."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipeline.errors import BrokenInvariantError, SchemaError
from pipeline.ids import SchemaHandle, SchemaId, StreamName, TopicName
from pipeline.lanes.source_ids import answered_by
from pipeline.markers.positions import MarkedSource
from pipeline.network.model import Box, ExternalStream, Origin
from pipeline.network.sql_text import string
from pipeline.network.types import EnumForm
from pipeline.planner.boxes.words import on_one_line
from pipeline.planner.columns import pruned
from pipeline.planner.plan import DerivedStream, Fragment, FragmentInput
from pipeline.spark.query.boxes.catalogue import lower_stateful, lower_stateless
from pipeline.spark.query.keys import key_sql
from pipeline.spark.query.lowered import (
    DECODED_MARK,
    AsOfCore,
    AssignedTopic,
    Call,
    Check,
    Encoding,
    EventTime,
    Lowered,
    Path,
    Project,
    Source,
    Step,
    TopicRole,
    WriterSchema,
)
from pipeline.spark.query.sql import quoted
from schemas.avro import parse
from schemas.meaning import other_meanings
from schemas.wire import words


@dataclass(frozen=True, slots=True)
class LoweringInputs:
    """External inputs of lowering: schemas in the registry, partitions in Kafka.

    `sources`: as in the lane's marker.
    """

    sources: tuple[MarkedSource, ...]
    writers: Mapping[StreamName, tuple[WriterSchema, ...]]
    missing: tuple[SchemaHandle, ...]
    partitions: Mapping[TopicName, int]
    value_id: SchemaId
    key_id: SchemaId | None


def lower(fragment: Fragment, around: LoweringInputs) -> Lowered:
    """Lower a fragment.

    Raises:
        BrokenInvariantError: the planner made a fragment that is not a tree with one stateful box.
    """
    decided = answered_by(fragment, around.sources)
    fragment = pruned(fragment)
    stateful = fragment.stateful_box
    lowered = None if stateful is None else lower_stateful(stateful)
    paths = _paths(fragment, lowered.before if lowered else ())
    core = lowered.core if lowered else None
    if isinstance(core, AsOfCore):
        core = replace(core, decided=decided)
    after = lowered.after + _downstream(stateful, fragment) if lowered and stateful else ()
    if stateful is not None:
        after += _symbols(fragment)
    inputs = {i.name: i for i in fragment.inputs}
    return Lowered(
        sources=tuple(_source(inputs[m.name], m, around) for m in around.sources),
        paths=paths,
        traits=fragment.traits,
        shape=fragment.shape,
        core=core,
        after=after,
        encoding=_encoding(fragment, around),
        ids=fragment.identified,
        labels=lowered.labels if lowered else (),
    )


def _paths(fragment: Fragment, before: tuple[Step, ...]) -> tuple[Path, ...]:
    """A path for each way of the plan, with the steps that run on every row `before` the core."""
    seen: set[StreamName] = set()
    paths: list[Path] = []
    for way in fragment.ways:
        steps = tuple(step for box in way.boxes for step in lower_stateless(box))
        path = Path(way.source, way.port, way.name, steps + before, first=way.source not in seen)
        if any(step.checks or isinstance(step, Call) for step in path.as_rows):
            raise BrokenInvariantError(
                f"fragment {fragment.name} can refuse a record when some rows of it have passed"
            )
        paths.append(path)
        seen.add(way.source)
    return tuple(paths)


def _downstream(stateful: Box, fragment: Fragment) -> tuple[Step, ...]:
    """The stateless boxes after the stateful one."""
    steps: tuple[Step, ...] = ()
    last = StreamName(stateful.name)
    for box in fragment.boxes:
        if last in box.inputs:
            steps += lower_stateless(box)
            last = StreamName(box.name)
    return steps


def _symbols(fragment: Fragment) -> tuple[Step, ...]:
    """A step that sets results aside with a symbol that was removed from an enum of the output.

    A state is kept when symbols are removed, so it may contain one that cannot be written.
    """
    columns, box = fragment.output.columns, fragment.boxes[-1].name
    checks = tuple(
        Check(
            f"coalesce({quoted(column.name)} NOT IN ({', '.join(map(string, symbols))}), false)",
            Origin(box, column.name),
            f"{column.name}, which is no symbol of the enum {column.form.name}",
        )
        for column in columns
        if isinstance(column.form, EnumForm)
        for symbols in [column.form.symbols]
    )
    kept = tuple((column.name, quoted(column.name)) for column in columns)
    return (Project(kept, checks),) if checks else ()


def _source(stream: FragmentInput, marked: MarkedSource, around: LoweringInputs) -> Source:
    def assigned(topic: TopicName, role: TopicRole) -> AssignedTopic:
        if topic not in around.partitions:
            raise BrokenInvariantError(f"the partitions of topic {topic} are not known")
        return AssignedTopic(topic, around.partitions[topic], role)

    external = isinstance(stream, ExternalStream)
    again = () if marked.redrive is None else (assigned(marked.redrive[0], TopicRole.REDRIVE),)
    data = assigned(stream.topic, TopicRole.DATA)
    topics = (data, *again)
    if isinstance(stream, ExternalStream):
        event_time = _event_time(stream)
    else:
        event_time = EventTime(None, None, None)
    return Source(
        input=stream.name,
        topics=topics,
        columns=stream.columns,
        reader_json=with_decoded_mark(stream.schema_json),
        writers=tuple(_fitting(one, stream.schema_json) for one in around.writers[stream.name]),
        missing=around.missing,
        event_time=event_time,
        start=stream.start if isinstance(stream, ExternalStream) else None,
        id=marked.id,
        skipped_ms=marked.skipped_ms,
        written_to=None if external else marked.topic_id,
        has_ids=isinstance(stream, DerivedStream) and stream.tentative,
    )


def _fitting(writer: WriterSchema, reader_json: str) -> WriterSchema:
    """A schema, marked as unfit if decoding would change the meaning of its values."""
    try:
        wrong = other_meanings(parse(reader_json), parse(writer.json))
    except SchemaError:
        return writer  # another registry may be less strict than our parser: Spark decides
    return replace(writer, unfit=f"schema {words(writer.handle)}: {wrong[0]}") if wrong else writer


def _event_time(stream: ExternalStream) -> EventTime:
    """Event time in whole milliseconds; finer ones are truncated."""
    time = stream.event_time
    sql = time.sql if time.millis else f"timestamp_millis(unix_millis({time.sql}))"
    return EventTime(sql, time.failed, stream.ahead_ms, on_one_line(time))


def with_decoded_mark(schema_json: str) -> str:
    """The reader schema with one more field, which has its default in every decoded record.

    Spark's permissive mode decodes an invalid value as a record of nulls, which could be a valid
    record as well; the extra field, never null in a valid one, distinguishes the two.
    """
    schema = json.loads(schema_json)
    mark = {"name": DECODED_MARK, "type": "boolean", "default": True}
    return json.dumps({**schema, "fields": [*schema["fields"], mark]}, sort_keys=False)


def _encoding(fragment: Fragment, around: LoweringInputs) -> Encoding:
    output = fragment.output
    if (output.key_schema_json is None) != (around.key_id is None):
        raise BrokenInvariantError(f"the key schema of {output.topic} is not registered")
    return Encoding(
        value_columns=tuple(column.name for column in output.columns),
        value_json=output.schema_json,
        value_id=around.value_id,
        key_columns=output.key,
        key_json=output.key_schema_json,
        key_id=around.key_id,
        key_sql=key_sql(output),
        partitions=around.partitions[output.topic],
    )
