"""Builders of small networks for tests."""

import re
from dataclasses import replace

from pipeline.ids import BoxName, NetworkName, ParticipantId, StreamName, Subject, TopicName
from pipeline.network.aggregates import Aggregation
from pipeline.network.avro_types import to_avro
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.as_of import AsOf
from pipeline.network.boxes.deduplicate import Deduplicate
from pipeline.network.boxes.filter import Filter
from pipeline.network.boxes.flat_map import FlatMap
from pipeline.network.boxes.join import Join, TimeBound
from pipeline.network.boxes.map import Map
from pipeline.network.boxes.python import Python
from pipeline.network.boxes.route import BRANCH, Branch, Choice, Route
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.top import Top
from pipeline.network.boxes.union import Union
from pipeline.network.boxes.windows import TumblingWindow, Window
from pipeline.network.model import (
    Box,
    ColumnRef,
    Computed,
    Expression,
    ExternalStream,
    Network,
    Output,
    Silence,
    StartAt,
)
from pipeline.network.types import ArrayType, Column, Columns, DataType, Scalar

OWNER = ParticipantId("local")
MINUTE = 60_000
BY_MINUTE = TumblingWindow(MINUTE, 0)

_REFERENCE = re.compile(r"(?:`(left|right)`\.)?`(\w+)`")


def expression(sql: str, type_: DataType = Scalar.LONG, *, nullable: bool = True) -> Expression:
    """An expression that cannot fail; its back-quoted names are the columns it reads."""
    columns = frozenset(ColumnRef(name, side) for side, name in _REFERENCE.findall(sql))
    return Expression(sql.replace("`", ""), sql, None, type_, nullable, columns)


def column(name: str, type_: DataType = Scalar.LONG, *, nullable: bool = True) -> Column:
    """A column; a nullable number by default."""
    return Column(name, type_, nullable)


def external(name: str, *columns: Column) -> ExternalStream:
    """An external stream with the event time `at` and the given columns."""
    all_columns = (*columns, column("at", Scalar.TIMESTAMP, nullable=False))
    return ExternalStream(
        name=StreamName(name),
        topic=TopicName(f"{name}-topic"),
        subject=Subject(f"{name}-topic-value"),
        schema_json=to_avro(all_columns, name, "test"),
        columns=all_columns,
        event_time=expression("`at`", Scalar.TIMESTAMP, nullable=False),
        lateness_ms=5_000,
        idle_after_ms=10_000,
        silence=Silence.IDLE,
        start=StartAt("earliest"),
        ahead_ms=3_600_000,
        partitions=4,
    )


def filtered(name: str, source: ExternalStream | Box, where: str) -> Filter:
    """A filter of a stream."""
    time = "at" if isinstance(source, ExternalStream) else source.event_time_column
    return Filter(
        BoxName(name),
        StreamName(source.name),
        expression(where, Scalar.BOOLEAN),
        columns=source.columns,
        event_time_column=time,
        key=() if isinstance(source, ExternalStream) else source.key,
    )


def mapped(name: str, source: ExternalStream | Box, select: dict[str, str]) -> Map:
    """A map of a stream; columns of the result are nullable numbers."""
    computed = tuple(Computed(new, expression(sql)) for new, sql in select.items())
    return Map(
        BoxName(name),
        StreamName(source.name),
        computed,
        columns=tuple(map(column, select)),
        event_time_column=None,
    )


def aggregated(
    name: str,
    source: ExternalStream | Box,
    by: dict[str, str],
    compute: dict[str, tuple[str, str]],
    *,
    window: Window | SessionWindow = BY_MINUTE,
    nullable: bool = True,
) -> Aggregate:
    """An aggregate; `compute` maps a result to (function, argument), each with a placeholder."""
    groups = tuple(Computed(new, expression(sql, nullable=nullable)) for new, sql in by.items())
    aggregations = tuple(
        Aggregation(f"agg_{i}", function, expression(argument), Scalar.LONG, nullable=True)
        for i, (function, argument) in enumerate(compute.values())
    )
    results = tuple(
        Computed(new, replace(expression(f"`agg_{i}`"), text=f"{call}({expression(of).text})"))
        for i, (new, (call, of)) in enumerate(compute.items())
    )
    columns: Columns = (
        *(column(new, nullable=nullable) for new in by),
        column("window_start", Scalar.TIMESTAMP, nullable=False),
        column("window_end", Scalar.TIMESTAMP, nullable=False),
        *map(column, compute),
    )
    return Aggregate(
        BoxName(name),
        StreamName(source.name),
        window,
        groups,
        aggregations,
        results,
        columns=columns,
        event_time_column="window_end",
        key=tuple(by),
    )


def best(
    name: str,
    source: ExternalStream | Box,
    by: dict[str, str],
    select: dict[str, str],
    ordered_by: str,
) -> Top:
    """The two highest rows of each minute; every column is a nullable number."""
    groups = tuple(Computed(new, expression(sql)) for new, sql in by.items())
    computed = tuple(Computed(new, expression(sql)) for new, sql in select.items())
    columns: Columns = (
        *map(column, by),
        column("window_start", Scalar.TIMESTAMP, nullable=False),
        column("window_end", Scalar.TIMESTAMP, nullable=False),
        column("rank", Scalar.INT, nullable=False),
        *map(column, select),
    )
    return Top(
        name=BoxName(name),
        input=StreamName(source.name),
        window=BY_MINUTE,
        by=groups,
        rows=2,
        ordered_by=expression(ordered_by),
        highest=True,
        select=computed,
        columns=columns,
        event_time_column="window_end",
        key=tuple(by),
    )


def united(name: str, *sources: ExternalStream | Box) -> Union:
    """A union of streams with the columns of the first."""
    return Union(
        BoxName(name),
        tuple(StreamName(source.name) for source in sources),
        columns=sources[0].columns,
        event_time_column=None,
    )


def python(name: str, source: ExternalStream | Box) -> Python:
    """Twice the first number of a row that has one; `evaluate.py` says it in plain Python."""
    return Python(
        BoxName(name),
        StreamName(source.name),
        function="numbers.py:double",
        source="def double(batch): ...",
        columns=(column("twice"),),
        timeout_ms=10_000,
    )


def flat_mapped(
    name: str,
    source: ExternalStream | Box,
    array: str,
    select: dict[str, str],
    at: str | None = None,
) -> FlatMap:
    """A flat_map of a stream whose elements are named `item`; columns are nullable numbers."""
    return FlatMap(
        BoxName(name),
        StreamName(source.name),
        Computed("item", expression(array, ArrayType(Scalar.LONG, element_nullable=True))),
        tuple(Computed(new, expression(sql)) for new, sql in select.items()),
        columns=tuple(map(column, select)),
        event_time_column=None,
        at=at,
    )


def routed(
    name: str,
    source: ExternalStream | Box,
    to: dict[str, Expression],
    otherwise: str | None = None,
) -> tuple[Route, tuple[Branch, ...]]:
    """A route of a stream and its branches."""
    time = "at" if isinstance(source, ExternalStream) else source.event_time_column
    route = Route(
        BoxName(name),
        StreamName(source.name),
        tuple(Choice(BoxName(branch), where) for branch, where in to.items()),
        BoxName(otherwise) if otherwise else None,
        columns=(*source.columns, column(BRANCH, Scalar.STRING, nullable=False)),
        event_time_column=time,
    )
    names = [*to, *([otherwise] if otherwise else [])]
    branches = (
        Branch(BoxName(n), StreamName(name), columns=source.columns, event_time_column=time)
        for n in names
    )
    return route, tuple(branches)


def failing(expression: Expression) -> Expression:
    """The expression as one that can fail, and never does."""
    return replace(expression, failed="false")


def joined(
    name: str,
    left: ExternalStream | Box,
    right: ExternalStream | Box,
    on: tuple[tuple[str, str], ...],
    select: dict[str, str],
    bound: tuple[int, int] = (0, 0),
) -> Join:
    """An inner join of two streams."""
    return Join(
        BoxName(name),
        StreamName(left.name),
        StreamName(right.name),
        on,
        TimeBound(*bound),
        tuple(Computed(new, expression(sql)) for new, sql in select.items()),
        columns=tuple(map(column, select)),
        event_time_column=None,
    )


def as_of_join(
    name: str,
    left: ExternalStream | Box,
    right: ExternalStream | Box,
    on: tuple[tuple[str, str], ...],
    select: dict[str, str],
    within_ms: int,
) -> AsOf:
    """An as-of join: rows of the one stream, each with the latest of the other."""
    return AsOf(
        BoxName(name),
        StreamName(left.name),
        StreamName(right.name),
        on,
        within_ms,
        tuple(Computed(new, expression(sql)) for new, sql in select.items()),
        columns=tuple(map(column, select)),
        event_time_column=None,
    )


def deduplicated(
    name: str, source: ExternalStream | Box, by: tuple[str, ...], within_ms: int
) -> Deduplicate:
    """A deduplication of a stream."""
    time = "at" if isinstance(source, ExternalStream) else source.event_time_column
    return Deduplicate(
        BoxName(name),
        StreamName(source.name),
        by,
        within_ms,
        columns=source.columns,
        event_time_column=time,
        key=() if isinstance(source, ExternalStream) else source.key,
    )


def network(
    streams: tuple[ExternalStream, ...], boxes: tuple[Box, ...], outputs: tuple[str, ...] = ()
) -> Network:
    """A network; an output `x` goes to topic `x-out`."""
    return Network(
        NetworkName("net"),
        streams,
        boxes,
        tuple(Output(StreamName(x), TopicName(f"{x}-out"), 4) for x in outputs),
        partitions=4,
        replication=1,
        retention_ms=604_800_000,
        auto_create=True,
    )


def tolls(*, nullable: bool = False, outputs: tuple[str, ...] = ()) -> Network:
    """The toll network; `nullable`: whether a sighting may lack road and segment."""
    sightings = external(
        "sightings",
        column("car", Scalar.STRING, nullable=False),
        column("road", Scalar.STRING, nullable=nullable),
        column("segment", Scalar.INT, nullable=nullable),
        column("speed", Scalar.DOUBLE, nullable=False),
        column("location", Scalar.STRING, nullable=False),
    )
    by = {"road": "`road`", "segment": "`segment`"}
    speed = aggregated(
        "average_speed", sightings, by, {"speed": ("avg", "`speed`")}, nullable=nullable
    )
    volume = aggregated(
        "traffic_volume", sightings, by, {"cars": ("count_distinct", "`car`")}, nullable=nullable
    )
    toll = replace(
        joined(
            "tolls",
            speed,
            volume,
            (("road", "road"), ("segment", "segment"), ("window_end", "window_end")),
            {
                "road": "`left`.`road`",
                "segment": "`left`.`segment`",
                "minute": "`left`.`window_end`",
                "toll": "`right`.`cars` - `left`.`speed`",
            },
        ),
        event_time_column="minute",
        key=("road", "segment"),
    )
    moving = filtered("moving", sightings, "`speed` > 0")
    notifications = joined(
        "toll_notifications",
        moving,
        toll,
        (("road", "road"), ("segment", "segment")),
        {"car": "`left`.`car`", "toll": "`right`.`toll`", "seen_at": "`left`.`at`"},
        (0, MINUTE),
    )
    stopped = filtered("stopped", sightings, "`speed` = 0")
    trucks = filtered("tow_trucks", sightings, "`car` = 'tow'")
    dispatch = joined(
        "tow_dispatch",
        stopped,
        trucks,
        (("location", "location"),),
        {"location": "`left`.`location`"},
        (-5 * MINUTE, 5 * MINUTE),
    )
    boxes = (speed, volume, toll, moving, notifications, stopped, trucks, dispatch)
    return network((sightings,), boxes, ("toll_notifications", "tow_dispatch", *outputs))
