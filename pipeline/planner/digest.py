"""Digests of plans: equal digests mean equal behaviour.

Two plans with the same digest run the same, so an unchanged deploy restarts nothing. Excluded is
what has no effect: the text of an expression (its checked SQL counts), documentation inside
schemas, partition counts and retention, which only matter when a topic is created, and the
planner's notes. A field with its default value is excluded as well, so that a later version of
this program can add a field without a change to every fragment's digest.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import get_args, get_type_hints

from pipeline.errors import BrokenInvariantError
from pipeline.ids import BoxName, SourceId, StreamName, TopicName
from pipeline.labels import format_selector
from pipeline.network.boxes.as_of import AsOf
from pipeline.network.boxes.python import Python
from pipeline.network.boxes.traits import Keeps
from pipeline.network.model import Box, Expression, ExternalStream, Load, Silence, StartAt
from pipeline.network.types import Column
from pipeline.planner.columns import narrowed, pruned, timing_columns
from pipeline.planner.existing_topics import MIN_COMPACTION_LAG_MS
from pipeline.planner.plan import DerivedStream, Fragment, FragmentInput, NewTopic, Plan
from pipeline.priority import Priority
from pipeline.reliability import UPSTREAM_BACKUP
from schemas.json_value import Json, list_of, object_of, text_of

FORMAT_VERSION = 1
"""Incremented when the same plan gets another digest. Digests of two formats are neither equal nor
different: see `same_format`."""

ANSWER_FORMAT = 1
"""Incremented when the same plan stores a version of a table in other bytes."""


_LEFT_OUT: Mapping[type, frozenset[str]] = MappingProxyType(
    {
        # The schema of the output contains the written form of a column.
        Column: frozenset({"form"}),
        Expression: frozenset({"text", "columns", "origin", "form"}),
        # An unreadable field is no column, so no box reads it.
        ExternalStream: frozenset(
            {"subject", "partitions", "retention_ms", "unreadable", "silence_declared"}
        ),
        # Only affects when event time advances.
        DerivedStream: frozenset({"partitions", "lateness_ms"}),
        # Where and when a fragment runs, and who follows it, changes nothing of what it does.
        Fragment: frozenset({"nodes", "apart", "reliability", "priority"}),
    }
)
_SCHEMA_FIELDS = frozenset({"schema_json", "key_schema_json"})


def fragment_digest(fragment: Fragment) -> str:
    """`<format version>:<SHA-256 in hex>` of the behaviour of a fragment's query."""
    return _hash(_canonical(_behaving(fragment)))


def state_digest(fragment: Fragment) -> str:
    """`<format version>:<SHA-256 in hex>` of what determines the state of a fragment's query.

    The output topic does not, nor does the advance of its inputs' event time: both may change while
    the state remains valid. `ahead` decides which records are accepted; but a record rejected by it
    has a dead letter, and a rebuild reads all others. So do the symbols of an enum without a
    default, whose values are strings: for removed ones see `lost_symbols`. Excluded are names
    (streams and boxes count by their places) and columns of the inputs that nothing reads, which no
    state contains. So the boxes behind the stateful box are included.
    """
    fragment = pruned(fragment)
    plain: dict[str, Json] = {
        "inputs": [_state_of(stream) for stream in fragment.inputs],
        "boxes": _placed_boxes(fragment, fragment.boxes),
    }
    if fragment.identified and fragment.traits.keeps is Keeps.ROWS:
        plain["ids"] = True  # waiting rows keep theirs
        if named := [n for n, one in enumerate(fragment.inputs) if _has_ids(one)]:
            plain["ids of"] = list(named)
    return _hash(plain)


def answer_digest(fragment: Fragment, sources: Mapping[StreamName, SourceId]) -> str:
    """`<format version>:<SHA-256 in hex>` of what determines an as-of join's match of a row.

    That is which version a row matches, and the bytes in which a version is stored. Excluded is
    what is computed from both, `select` and the boxes behind the join, except for the columns of
    the table that they read. The table itself is included, whatever its stream is called.

    Args:
        fragment: as planned.
        sources: the lane's sources by the names of the streams; the table may be missing as long
            as no lane has run.

    Returns:
        Empty if the fragment has no such join.
    """
    box = fragment.stateful_box
    if not isinstance(box, AsOf):
        return ""
    asking = replace(box, select=(), columns=(), event_time_column=None, key=())
    before = fragment.boxes[: fragment.boxes.index(box)]
    decides, kept = pruned(replace(fragment, boxes=(*before, asking))), pruned(fragment)
    table = [way.source for way in fragment.ways if way.port == "right"]
    return _hash(
        {
            "format": ANSWER_FORMAT,
            "from": [sources.get(name) for name in table],
            "inputs": [_state_of(stream) for stream in decides.inputs],
            "boxes": _placed_boxes(decides, decides.boxes),
            "table": [_state_of(stream) for stream in kept.inputs if stream.name in table],
            "on its way": _placed_boxes(
                kept, tuple(b for w in kept.ways if w.port == "right" for b in w.boxes)
            ),
        }
    )


def source_digest(stream: FragmentInput) -> str:
    """`<format version>:<SHA-256 in hex>` of what determines the rows of a stream's records.

    Neither its name and topic nor its start position are part of it.
    """
    return _hash(_canonical(_unnamed(_without_timing(stream))))


def timing_digest(stream: FragmentInput) -> str:
    """`<format version>:<SHA-256 in hex>` of what determines the event times of a stream's records.

    Those of a derived stream are its writer's.
    """
    if not isinstance(stream, ExternalStream):
        return _hash(type(stream).__name__)
    narrow = _without_docs(json.loads(narrowed(stream.schema_json, timing_columns(stream))))
    return _hash({"schema": narrow, "event_time": _canonical(stream.event_time)})


def decoding(stream: FragmentInput) -> Mapping[str, Json]:
    """The decoding of each field of an input, as far as a state depends on it."""
    schema = object_of(_without_docs(json.loads(_decoded_alike(stream).schema_json)))
    return {text_of(object_of(field)["name"]): field for field in list_of(schema["fields"])}


def plan_digest(plan: Plan) -> str:
    """`<format version>:<SHA-256 in hex>` of all fragments and their topics.

    Included are where fragments run, how reliable they are, their priority and their availability,
    as far as it is not the default.
    """
    content: dict[str, Json] = {
        "owner": plan.network.participant,
        "network": plan.network.name,
        "fragments": [_canonical(_behaving(fragment)) for fragment in plan.fragments],
        "topics": [_canonical(_deciding(topic)) for topic in plan.topics],
    }
    placed = [fragment for fragment in plan.fragments if fragment.nodes or fragment.apart]
    if placed:
        content["placement"] = [
            [one.name, format_selector(one.nodes), list(one.apart)] for one in placed
        ]
    followed = [one for one in plan.fragments if one.reliability != UPSTREAM_BACKUP]
    if followed:
        content["reliability"] = [
            [
                one.name,
                one.reliability.mode.value,
                one.reliability.secondaries,
                *filter(None, (one.reliability.checkpoint_every_ms,)),
            ]
            for one in followed
        ]
    ranked = [one for one in plan.fragments if one.priority is not Priority.NORMAL]
    if ranked:
        content["priority"] = [[one.name, one.priority.value] for one in ranked]
    bounded = [one for one in plan.fragments if one.availability and not one.may_be_tentative]
    if bounded:
        content["availability"] = [[one.name, _canonical(one.availability)] for one in bounded]
    return _hash(content)


def _deciding(topic: NewTopic) -> NewTopic:
    """A topic without settings that are only for those who look at its records later."""
    config = tuple(one for one in topic.config if one[0] != MIN_COMPACTION_LAG_MS)
    return replace(topic, config=config)


def same_format(one: str, other: str) -> bool:
    """Whether two digests have the same format, so that they can be compared."""
    return _format(one) == _format(other)


def _format(digest: str) -> str:
    version, colon, _ = digest.partition(":")
    return version if colon else ""


def _behaving(fragment: Fragment) -> Fragment:
    """A fragment without a bound that has no effect on its query, besides what its inputs say."""
    if fragment.may_be_tentative or fragment.availability is None:
        return fragment
    return replace(fragment, availability=None)


def _state_of(stream: FragmentInput) -> Json:
    """The part of an input that determines a state."""
    return _canonical(_decoded_alike(_unnamed(_without_timing(stream))))


def _has_ids(stream: FragmentInput) -> bool:
    """Whether rows of an input are identified by the ids of results."""
    return isinstance(stream, DerivedStream) and stream.tentative


def _placed_boxes(fragment: Fragment, boxes: tuple[Box, ...]) -> Json:
    """Some boxes of a fragment, with places instead of the names of its streams and boxes."""
    places = {stream.name: f"input {n}" for n, stream in enumerate(fragment.inputs)}
    places |= {StreamName(box.name): f"box {n}" for n, box in enumerate(fragment.boxes)}
    return [_canonical(_without_timeout(box), places) for box in boxes]


def _without_timing(stream: FragmentInput) -> FragmentInput:
    """An input with constant settings of event time."""
    if not isinstance(stream, ExternalStream):
        return stream
    return replace(
        stream,
        lateness_ms=0,
        idle_after_ms=0,
        silence=Silence.IDLE,
        load=Load.ALONG,
        ahead_ms=0,
    )


def _unnamed(stream: FragmentInput) -> FragmentInput:
    """An input without name, topic and start position."""
    nameless = replace(stream, name=StreamName(""), topic=TopicName(""))
    if not isinstance(nameless, ExternalStream):
        return replace(nameless, tentative=False)
    return replace(nameless, start=StartAt("earliest"))


def _decoded_alike(stream: FragmentInput) -> FragmentInput:
    """An input without the symbols of its enums.

    An enum with a default keeps them: records with an unknown symbol are not rejected, but read
    as the default.
    """
    schema = json.dumps(_without_symbols(json.loads(stream.schema_json)))
    return replace(stream, schema_json=schema)


def _without_timeout(box: Box) -> Box:
    """A box with a constant timeout."""
    return replace(box, timeout_ms=0) if isinstance(box, Python) else box


def _hash(value: Json) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return f"{FORMAT_VERSION}:{hashlib.sha256(text.encode()).hexdigest()}"


def _canonical(value: object, places: Mapping[StreamName, str] = MappingProxyType({})) -> Json:
    """Plain data that is equal exactly for equal behaviour.

    `places`: replacements of the names of streams and boxes.
    """
    if isinstance(value, Enum):
        return _canonical(value.value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, tuple):
        return [_canonical(item, places) for item in value]
    if isinstance(value, frozenset):
        return sorted((_canonical(item, places) for item in value), key=json.dumps)
    if is_dataclass(value) and not isinstance(value, type):
        left_out = _LEFT_OUT.get(type(value), frozenset())
        names = _name_fields(type(value)) if places else frozenset()
        plain: dict[str, Json] = {"": type(value).__name__}
        for field in fields(value):
            content = getattr(value, field.name)
            if field.name in left_out or (
                field.default is not MISSING and content == field.default
            ):
                continue
            if field.name in _SCHEMA_FIELDS and isinstance(content, str):
                plain[field.name] = _without_docs(json.loads(content))
            elif field.name in names:
                plain[field.name] = _placed(content, places)
            else:
                plain[field.name] = _canonical(content, places)
        return plain
    raise BrokenInvariantError(f"a plan cannot hold {type(value).__name__}: it has no digest")


@cache
def _name_fields(kind: type) -> frozenset[str]:
    """The fields of a dataclass that contain names of streams or boxes."""
    hints = get_type_hints(kind)
    return frozenset(
        name for name, hint in hints.items() if {StreamName, BoxName} & {hint, *get_args(hint)}
    )


def _placed(content: object, places: Mapping[StreamName, str]) -> Json:
    """Places instead of names."""
    if isinstance(content, tuple):
        return [_placed(one, places) for one in content]
    return None if content is None else places.get(StreamName(str(content)), str(content))


def _without_symbols(schema: Json) -> Json:
    if isinstance(schema, list):
        return [_without_symbols(part) for part in schema]
    if isinstance(schema, dict):
        every = schema.get("type") == "enum" and "default" not in schema
        return {
            name: part if name == "default" else _without_symbols(part)
            for name, part in schema.items()
            if not (every and name == "symbols")
        }
    return schema


def _without_docs(schema: Json) -> Json:
    if isinstance(schema, list):
        return [_without_docs(part) for part in schema]
    if isinstance(schema, dict):
        return {
            name: part if name == "default" else _without_docs(part)
            for name, part in schema.items()
            if name != "doc"
        }
    return schema
