"""Hypothesis strategy for networks of any shape, described in Python."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from pipeline.builder import (
    Availability,
    Box,
    Duration,
    Limit,
    NetworkBuilder,
    Placement,
    PriorityLevel,
    Reliability,
    ReliabilityMode,
    Session,
    Size,
    Stream,
    Window,
    Within,
    boxes,
)

TEXT, WHOLE, REAL, TIME = "text", "whole", "real", "time"
SCHEMA, SUBJECT = "sighting.avsc", "sightings-value"
CODE = "code/rating.py"
SIGHTING = {
    "car": TEXT,
    "road": TEXT,
    "segment": WHOLE,
    "speed": REAL,
    "location": TEXT,
    "seen_at": TIME,
}
"""Columns of the schema of sightings."""


@dataclass(frozen=True, slots=True)
class StreamColumns:
    """A stream and its columns with their types."""

    stream: Stream
    columns: dict[str, str]


windows: st.SearchStrategy[Duration | Window | None] = st.deferred(
    lambda: (
        st.none()
        | lengths
        | st.builds(
            Window,
            size=st.sampled_from(("1m", "window")),
            slide=st.sampled_from((None, "20s", timedelta(seconds=7))),
            offset=st.sampled_from((None, timedelta(seconds=5))),
        )
    )
)
sessions: st.SearchStrategy[Duration | Session] = st.deferred(
    lambda: (
        some_lengths | st.builds(Session, gap=some_lengths, longest=st.sampled_from((None, "1h")))
    )
)
bounds: st.SearchStrategy[Duration | Within] = st.deferred(
    lambda: (
        lengths
        | st.builds(Within, before=lengths)
        | st.builds(Within, before=lengths, after=lengths)
    )
)
limits = st.none() | st.builds(
    Limit, stop_above=st.integers(0, 9), within=st.sampled_from((None, "1h", timedelta(days=1)))
)
paces: st.SearchStrategy[Duration | None] = st.sampled_from(
    (None, "0ms", "500ms", timedelta(seconds=60))
)
placements: st.SearchStrategy[Placement | None] = st.sampled_from(
    (None, Placement(nodes="zone=a"), Placement(nodes="zone!=a|b,disk"))
)
reliabilities: st.SearchStrategy[Reliability | ReliabilityMode | None] = st.sampled_from(
    (
        None,
        "upstream_backup",
        "active_standby",
        Reliability(mode="active_standby", secondaries=5),
        Reliability(mode="upstream_backup"),
    )
)
priorities: st.SearchStrategy[PriorityLevel | None] = st.sampled_from(
    (None, "high", "normal", "low")
)
availabilities: st.SearchStrategy[Availability | Duration | None] = st.sampled_from(
    (None, "3s", timedelta(milliseconds=500), Availability(bound="1s", policy="suspend"))
)
state_limits: st.SearchStrategy[Size | None] = st.sampled_from((None, "16MiB", "4GiB", "64TiB"))
lengths: st.SearchStrategy[Duration] = st.sampled_from(
    ("5s", "1m", timedelta(minutes=5), timedelta(milliseconds=1), "window")
)
some_lengths: st.SearchStrategy[Duration] = st.sampled_from(("1m", timedelta(seconds=90)))
AWKWARD = ('it\\\'s: "x" # no', "a\nb", "", "~", "null")


@st.composite
def described(draw: st.DrawFn) -> NetworkBuilder:
    """A valid network, of up to seven boxes over one or two streams."""
    network = NetworkBuilder(
        "generated",
        window=draw(some_lengths),
        partitions=draw(st.none() | st.integers(1, 9)),
        replication=draw(st.none() | st.integers(1, 3)),
        retention=draw(st.none() | st.just("3d")),
        internal_retention=draw(st.sampled_from((None, "needed"))),
        auto_create=draw(st.none() | st.booleans()),
        pace=draw(paces),
        state_limit=draw(state_limits),
        placement=draw(placements),
        reliability=draw(reliabilities),
        priority=draw(priorities),
        availability=draw(availabilities),
    )
    known = [_external(draw, network, f"s{i}") for i in range(draw(st.integers(1, 2)))]
    for i in range(draw(st.integers(1, 7))):
        known.append(_box(draw, f"b{i}", known))
    for i, one in enumerate(known):
        if isinstance(one.stream, Box) and draw(st.booleans()):
            network.output(
                one.stream,
                topic=f"out-{i}",
                partitions=draw(st.none() | st.just(2)),
                retention=draw(st.none() | some_lengths),
                # A stream that another box reads is never corrected; the last one has no reader.
                corrections=draw(st.sampled_from((None, False, one is known[-1]))),
                key_format=draw(st.sampled_from((None, "avro"))),  # not every key has another one
                placement=draw(st.sampled_from((None, Placement()))),  # its box may have nodes
                reliability=None,  # its box may have one
                priority=None,
                availability=None,
            )
    return network


def _external(draw: st.DrawFn, network: NetworkBuilder, name: str) -> StreamColumns:
    subject = draw(st.none() | st.just(SUBJECT))
    stream = network.stream(
        name,
        topic=f"topic-of-{name}",
        schema=SCHEMA if subject is None else None,
        subject=subject,
        event_time=draw(st.sampled_from(("seen_at", "seen_at + INTERVAL 1 SECOND"))),
        lateness=draw(st.none() | some_lengths),
        idle_after=draw(st.none() | some_lengths),
        silence=draw(st.sampled_from((None, "idle", "missing"))),
        load=draw(st.sampled_from((None, "along", "first"))),
        start=draw(st.sampled_from((None, "latest", datetime(2024, 1, 31, 12, tzinfo=UTC)))),
        ahead=draw(st.none() | some_lengths),
        partitions=draw(st.none() | st.just(3)),
        retention=draw(st.none() | some_lengths),
        dead_letters=draw(limits),
    )
    return StreamColumns(stream, dict(SIGHTING))


def _box(draw: st.DrawFn, name: str, known: list[StreamColumns]) -> StreamColumns:
    source = draw(st.sampled_from(known))
    kinds = (
        _filter, _map, _flat_map, _aggregate, _join, _union, _route, _python, _deduplicate, _as_of,
        _top,
    )  # fmt: skip
    kind = draw(st.sampled_from(kinds))
    return kind(draw, name, source, known)


def _filter(
    draw: st.DrawFn, name: str, source: StreamColumns, _known: list[StreamColumns]
) -> StreamColumns:
    column = draw(st.sampled_from(sorted(source.columns)))
    value = draw(st.sampled_from(AWKWARD))
    where = {
        TEXT: f"{column} <> '{value}'",
        WHOLE: f"{column} = {draw(st.integers(-2, 2))}",
        REAL: f"{column} > {draw(st.integers(-2, 2))}",
        TIME: f"{column} IS NOT NULL",
    }[source.columns[column]]
    box = boxes.filter(
        name,
        source.stream,
        where=where,
        key=_key(draw, source.columns),
        dead_letters=draw(limits),
        pace=draw(paces),
        placement=draw(placements),
        reliability=draw(reliabilities),
        priority=draw(priorities),
        availability=draw(availabilities),
    )
    return StreamColumns(box, source.columns)


def _map(
    draw: st.DrawFn, name: str, source: StreamColumns, _known: list[StreamColumns]
) -> StreamColumns:
    chosen = draw(st.lists(st.sampled_from(sorted(source.columns)), min_size=1, unique=True))
    renamed = {f"m{i}": column for i, column in enumerate(chosen)}
    if draw(st.booleans()):
        columns = {column: source.columns[column] for column in chosen}
        box = boxes.map(name, source.stream, select=chosen, key=_key(draw, columns))
        return StreamColumns(box, columns)
    columns = {new: source.columns[old] for new, old in renamed.items()}
    box = boxes.map(
        name,
        source.stream,
        select=renamed,
        key=_key(draw, columns),
        dead_letters=draw(limits),
        pace=draw(paces),
        placement=draw(placements),
        reliability=draw(reliabilities),
        priority=draw(priorities),
        availability=draw(availabilities),
    )
    return StreamColumns(box, columns)


def _aggregate(
    draw: st.DrawFn, name: str, source: StreamColumns, _known: list[StreamColumns]
) -> StreamColumns:
    chosen = draw(st.lists(st.sampled_from(sorted(source.columns)), max_size=2, unique=True))
    by = {f"g{i}": column for i, column in enumerate(chosen)}
    column = draw(st.sampled_from(sorted(source.columns)))
    calls = ("count(*)", f"count(DISTINCT {column})")
    session = draw(st.none() | sessions)
    columns = {new: source.columns[old] for new, old in by.items()} | {"n": WHOLE}
    box = boxes.aggregate(
        name,
        source.stream,
        window=draw(windows) if session is None else None,
        session=session,
        by=by or draw(st.sampled_from((None, {}))),
        compute={"n": draw(st.sampled_from(calls))},
        key=_key(draw, columns),
        dead_letters=draw(limits),
        pace=draw(paces),
        placement=draw(placements),
        reliability=draw(reliabilities),
        priority=draw(priorities),
        availability=draw(availabilities),
        state_limit=draw(state_limits),
    )
    return StreamColumns(box, columns | {"window_start": TIME, "window_end": TIME})


def _top(
    draw: st.DrawFn, name: str, source: StreamColumns, _known: list[StreamColumns]
) -> StreamColumns:
    names = st.sampled_from(sorted(source.columns))
    chosen = draw(st.lists(names, max_size=2, unique=True))
    by = {f"g{i}": column for i, column in enumerate(chosen)}
    select = draw(st.lists(names, min_size=1, unique=True))
    order, lowest = draw(names), draw(st.booleans())
    columns = {new: source.columns[old] for new, old in by.items()}
    columns |= {f"t{i}": source.columns[column] for i, column in enumerate(select)}
    box = boxes.top(
        name,
        source.stream,
        rows=draw(st.integers(1, 1_000)),
        highest=None if lowest else order,
        lowest=order if lowest else None,
        by=by or draw(st.sampled_from((None, {}))),
        select={f"t{i}": column for i, column in enumerate(select)},
        window=draw(windows),
        key=_key(draw, columns),
        dead_letters=draw(limits),
        pace=draw(paces),
        placement=draw(placements),
        reliability=draw(reliabilities),
        priority=draw(priorities),
        availability=draw(availabilities),
        state_limit=draw(state_limits),
    )
    return StreamColumns(box, columns | {"window_start": TIME, "window_end": TIME, "rank": WHOLE})


def _join(
    draw: st.DrawFn, name: str, left: StreamColumns, known: list[StreamColumns]
) -> StreamColumns:
    column = draw(st.sampled_from(sorted(left.columns)))
    kind = left.columns[column]
    fit = [k for k in known if kind in k.columns.values()]
    right = draw(st.sampled_from(fit))
    other = draw(st.sampled_from([c for c, of in sorted(right.columns.items()) if of == kind]))
    columns = {"j_left": kind, "j_right": kind}
    box = boxes.join(
        name,
        left.stream,
        right.stream,
        on=[column] if column == other and draw(st.booleans()) else {column: other},
        within=draw(bounds),
        how=draw(st.sampled_from((None, "inner", "left", "full"))),
        select={"j_left": f"left.{column}", "j_right": f"right.{other}"},
        key=_key(draw, columns),
        dead_letters=draw(limits),
        pace=draw(paces),
        placement=draw(placements),
        reliability=draw(reliabilities),
        priority=draw(priorities),
        availability=draw(availabilities),
        state_limit=draw(state_limits),
    )
    return StreamColumns(box, columns)


def _union(
    draw: st.DrawFn, name: str, source: StreamColumns, _known: list[StreamColumns]
) -> StreamColumns:
    """Of a stream and parts of it, which have the same columns."""
    parts = [
        boxes.filter(f"{name}_part{i}", source.stream, where="TRUE")
        for i in range(draw(st.integers(1, 2)))
    ]
    streams = [source.stream, *parts]
    box = boxes.union(
        name,
        streams,
        key=_key(draw, source.columns),
        dead_letters=draw(limits),
        pace=draw(paces),
        placement=draw(placements),
        reliability=draw(reliabilities),
        priority=draw(priorities),
        availability=draw(availabilities),
    )
    return StreamColumns(box, source.columns)


def _python(
    draw: st.DrawFn, name: str, source: StreamColumns, _known: list[StreamColumns]
) -> StreamColumns:
    columns = {"p_text": TEXT, "p_whole": WHOLE}
    box = boxes.python(
        name,
        source.stream,
        function=draw(st.sampled_from((f"{CODE}:rate", "some.module:rate"))),
        columns={"p_text": "STRING NOT NULL", "p_whole": "INT"},
        timeout=draw(st.sampled_from((None, "2s", timedelta(milliseconds=100)))),
        key=_key(draw, columns),
        dead_letters=draw(limits),
        pace=draw(paces),
        placement=draw(placements),
        reliability=draw(reliabilities),
        priority=draw(priorities),
        availability=draw(availabilities),
    )
    return StreamColumns(box, columns)


def _flat_map(
    draw: st.DrawFn, name: str, source: StreamColumns, _known: list[StreamColumns]
) -> StreamColumns:
    """Of the words of a text; without one, of a literal."""
    texts = [f"`{column}`" for column, of in sorted(source.columns.items()) if of == TEXT]
    columns = {f"{name}_word": TEXT, f"{name}_place": WHOLE}
    box = boxes.flat_map(
        name,
        source.stream,
        each={f"{name}_word": f"split({draw(st.sampled_from([*texts, repr('a b')]))}, ' ')"},
        at=f"{name}_place",
        at_most=draw(st.none() | st.integers(1, 9)),
        select=sorted(columns) if draw(st.booleans()) else {column: column for column in columns},
        key=_key(draw, columns),
        dead_letters=draw(limits),
        pace=draw(paces),
        placement=draw(placements),
        reliability=draw(reliabilities),
        priority=draw(priorities),
        availability=draw(availabilities),
    )
    return StreamColumns(box, columns)


def _route(
    draw: st.DrawFn, name: str, source: StreamColumns, _known: list[StreamColumns]
) -> StreamColumns:
    """One of the branches of a route; the others are written to their topics."""
    column = draw(st.sampled_from(sorted(source.columns)))
    conditions = (f"{column} IS NULL", f"1 / hash({column}) > 0")
    count = draw(st.integers(1, 2))
    made = boxes.route(
        name,
        source.stream,
        to={f"{name}_to{i}": draw(st.sampled_from(conditions)) for i in range(count)},
        otherwise=draw(st.sampled_from((None, f"{name}_rest"))),
        key=_key(draw, source.columns),
        dead_letters=draw(limits),
        pace=draw(paces),
        placement=draw(placements),
        reliability=draw(reliabilities),
        priority=draw(priorities),
        availability=draw(availabilities),
    )
    return StreamColumns(made[draw(st.sampled_from(sorted(made)))], source.columns)


def _deduplicate(
    draw: st.DrawFn, name: str, source: StreamColumns, _known: list[StreamColumns]
) -> StreamColumns:
    by = draw(st.lists(st.sampled_from(sorted(source.columns)), min_size=1, unique=True))
    box = boxes.deduplicate(
        name,
        source.stream,
        by=by,
        within=draw(lengths),
        key=_key(draw, source.columns),
        dead_letters=draw(limits),
        pace=draw(paces),
        placement=draw(placements),
        reliability=draw(reliabilities),
        priority=draw(priorities),
        availability=draw(availabilities),
        state_limit=draw(state_limits),
    )
    return StreamColumns(box, source.columns)


def _as_of(
    draw: st.DrawFn, name: str, source: StreamColumns, known: list[StreamColumns]
) -> StreamColumns:
    other = draw(st.sampled_from(known))
    kinds = [(a, b) for a in source.columns for b in other.columns]
    on = [(a, b) for a, b in kinds if source.columns[a] == other.columns[b]]
    if not on:
        return _filter(draw, name, source, known)
    left, right = draw(st.sampled_from(on))
    columns = {"mine": source.columns[left], "theirs": other.columns[right]}
    box = boxes.as_of(
        name,
        source.stream,
        other.stream,
        on={left: right},
        within=draw(lengths),
        how=draw(st.sampled_from((None, "inner", "left"))),
        select={"mine": f"left.{left}", "theirs": f"right.{right}"},
        key=_key(draw, columns),
        dead_letters=draw(limits),
        pace=draw(paces),
        placement=draw(placements),
        reliability=draw(reliabilities),
        priority=draw(priorities),
        availability=draw(availabilities),
        state_limit=draw(state_limits),
    )
    return StreamColumns(box, columns)


def _key(draw: st.DrawFn, columns: dict[str, str]) -> list[str] | None:
    names = st.lists(st.sampled_from(sorted(columns)), min_size=1, max_size=2, unique=True)
    return draw(st.none() | names)
