"""Hypothesis strategies for networks of any shape, and rows for them."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from hypothesis import strategies as st

from pipeline.network.boxes.as_of import AsOf
from pipeline.network.boxes.join import Join
from pipeline.network.boxes.route import Route
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.sides import How, Pair
from pipeline.network.boxes.windows import SlidingWindow, TumblingWindow, Window
from pipeline.network.model import Box, ExternalStream, Network
from pipeline.network.types import ArrayType, Scalar
from pipeline.planner.boxes.catalogue import with_key
from tests.unit.planner.evaluate import Row
from tests.unit.planner.networks import (
    aggregated,
    as_of_join,
    best,
    column,
    deduplicated,
    expression,
    external,
    filtered,
    flat_mapped,
    joined,
    mapped,
    network,
    python,
    routed,
    united,
)

WINDOW = 10
ALL_WINDOWS: tuple[Window, ...] = (TumblingWindow(WINDOW, 0), SlidingWindow(WINDOW, 2, 4))
WINDOWS = st.sampled_from(ALL_WINDOWS)
FUNCTIONS = ("sum", "count", "max", "first", "last", "stddev_pop")
WINDOWS_OR_SESSIONS = WINDOWS | st.just(SessionWindow(3, WINDOW))
KINDS = (
    "filter", "filter", "map", "aggregate", "join", "twins", "union", "python", "flat_map", "route",
    "deduplicate", "top", "as_of",
)  # fmt: skip
ARRAY = ArrayType(Scalar.LONG, element_nullable=True)
SOURCE = external("s0", column("a"), column("b"), column("xs", ARRAY))

HOWS = st.sampled_from(How)

Stream = ExternalStream | Box


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """A network of up to eight boxes over one or two external streams."""
    sources = (SOURCE, external("s1", column("c"), column("a")))[: draw(st.integers(1, 2))]
    boxes: list[Box] = []
    for _ in range(draw(st.integers(1, 8))):
        streams: tuple[Stream, ...] = (*sources, *_readable(boxes))
        kind = draw(st.sampled_from(KINDS))
        *others, last = _boxes(draw, kind, f"b{len(boxes)}", streams)
        names = [column.name for column in last.columns]
        key = draw(st.just(last.key) | st.lists(st.sampled_from(names), max_size=2, unique=True))
        boxes.extend((*others, with_key(last, tuple(key))))
    outputs = draw(st.sets(st.sampled_from([b.name for b in _readable(boxes)]), max_size=3))
    return network(sources, tuple(boxes), tuple(sorted(outputs)))


@st.composite
def rows(draw: st.DrawFn, of: Network) -> dict[str, list[Row]]:
    """A few rows for each external stream; small numbers, so that rows match."""
    number = st.none() | st.integers(0, 2)
    numbers = st.lists(number, max_size=3).map(tuple)
    found: dict[str, list[Row]] = {}
    for stream in of.streams:
        times = draw(st.lists(st.integers(0, 25), min_size=1, max_size=4))
        values = {
            c.name: numbers if c.type == ARRAY else number for c in stream.columns if c.name != "at"
        }
        found[stream.name] = [
            Row(at, {**{name: draw(one) for name, one in values.items()}, "at": at}, f"key {i}")
            for i, at in enumerate(times)
        ]
    return found


def _readable(boxes: list[Box]) -> tuple[Box, ...]:
    """The boxes that others may read: not routes, only their branches."""
    return tuple(box for box in boxes if not isinstance(box, Route))


def _boxes(draw: st.DrawFn, kind: str, name: str, streams: tuple[Stream, ...]) -> list[Box]:
    recent = st.sampled_from(streams[-3:]) | st.sampled_from(streams)
    source = draw(recent)
    if kind == "union":
        return _union(draw, name, source, streams)
    if kind == "as_of":
        return [_as_of(draw, name, source, draw(recent))]
    if kind == "join":
        return [_join(draw, name, source, draw(recent))]
    return OF_ONE_STREAM[kind](draw, name, source)


def _filter(draw: st.DrawFn, name: str, source: Stream) -> list[Box]:
    where = f"`{_column(draw, source)}` > {draw(st.integers(-1, 1))}"
    return [filtered(name, source, where)]


def _map(draw: st.DrawFn, name: str, source: Stream) -> list[Box]:
    plain = {f"m{i}": f"`{_column(draw, source)}`" for i in range(draw(st.integers(1, 3)))}
    return [mapped(name, source, {**plain, "sum": f"`{_column(draw, source)}` + 1"})]


def _python(_draw: st.DrawFn, name: str, source: Stream) -> list[Box]:
    return [python(name, source)]


def _union(draw: st.DrawFn, name: str, source: Stream, streams: tuple[Stream, ...]) -> list[Box]:
    """A stream, its filtered rest, and another one of the same columns."""
    part = filtered(f"{name}_part", source, f"`{_column(draw, source)}` > 0")
    alike = [s for s in streams if s.columns == source.columns and s.name != source.name]
    others = draw(st.lists(st.sampled_from(alike), max_size=1)) if alike else []
    return [part, united(name, source, part, *others)]


def _flat_map(draw: st.DrawFn, name: str, source: Stream) -> list[Box]:
    """Of an array, and where the stream has none, of the one in the source."""
    arrays = [c.name for c in source.columns if c.type == ARRAY]
    if not arrays:
        source, arrays = SOURCE, ["xs"]
    select = {"x": "`item`", "y": f"`{_column(draw, source)}`", "z": "`n` + 1"}
    return [flat_mapped(name, source, f"`{draw(st.sampled_from(arrays))}`", select, at="n")]


def _route(draw: st.DrawFn, name: str, source: Stream) -> list[Box]:
    """To one or two branches, with or without the default branch."""
    to = {}
    for i in range(draw(st.integers(1, 2))):
        where = expression(f"`{_column(draw, source)}` > {draw(st.integers(-1, 1))}")
        to[f"{name}_to{i}"] = where
    route, branches = routed(name, source, to, draw(st.sampled_from((None, f"{name}_rest"))))
    return [route, *branches]


def _deduplicate(draw: st.DrawFn, name: str, source: Stream) -> list[Box]:
    names = st.sampled_from([column.name for column in source.columns])
    by = draw(st.lists(names, min_size=1, max_size=2, unique=True))
    return [deduplicated(name, source, tuple(by), draw(st.sampled_from((0, 3, 20))))]


def _column(draw: st.DrawFn, source: Stream) -> str:
    return draw(st.sampled_from([c.name for c in source.columns]))


def _aggregate(draw: st.DrawFn, name: str, source: Stream) -> list[Box]:
    by = {f"g{i}": f"`{_column(draw, source)}`" for i in range(draw(st.integers(0, 1)))}
    function = draw(st.sampled_from(FUNCTIONS))
    compute = {"n": (function, f"`{_column(draw, source)}`")}
    return [aggregated(name, source, by, compute, window=draw(WINDOWS_OR_SESSIONS))]


def _top(draw: st.DrawFn, name: str, source: Stream) -> list[Box]:
    by = {f"g{i}": f"`{_column(draw, source)}`" for i in range(draw(st.integers(0, 1)))}
    select = {"t": f"`{_column(draw, source)}`"}
    return [
        replace(
            best(name, source, by, select, f"`{_column(draw, source)}`"),
            window=draw(WINDOWS),
            rows=draw(st.integers(1, 2)),
            highest=draw(st.booleans()),
        )
    ]


def _twins(draw: st.DrawFn, name: str, source: Stream) -> list[Box]:
    """Two aggregates and a join of them that may or may not pair exactly the same windows."""
    groups = sorted({_column(draw, source), _column(draw, source)})
    results = draw(st.sampled_from((("n", "n"), ("n", "m"))))
    names = ("g", draw(st.sampled_from(("g", "h"))))
    window = draw(WINDOWS_OR_SESSIONS)
    sides = [
        aggregated(
            f"{name}_{side}",
            source,
            {f"{own}{i}": f"`{group}`" for i, group in enumerate(groups)},
            {result: (draw(st.sampled_from(FUNCTIONS)), f"`{_column(draw, source)}`")},
            window=window,
        )
        for side, own, result in zip("lr", names, results, strict=True)
    ]
    pairs = [(f"{names[0]}{i}", f"{names[1]}{i}") for i in range(len(groups))]
    pairs += draw(st.sampled_from(([], [("window_end", "window_end")])))
    bound = draw(st.sampled_from(((0, 0), (-5, 5), (0, WINDOW), (1, 5))))
    select = {
        "group": f"`left`.`{names[0]}0`",
        "n": f"`left`.`{results[0]}`",
        "m": f"`right`.`{results[1]}`",
        "end": "`right`.`window_end`",
    }
    left, right = sides
    join = joined(name, left, right, tuple(pairs), select, bound)
    return [left, right, replace(join, how=draw(HOWS))]


def _as_of(draw: st.DrawFn, name: str, left: Stream, right: Stream) -> AsOf:
    box = as_of_join(
        name, left, right, *_sides(draw, left, right), draw(st.sampled_from((0, 4, 30)))
    )
    return replace(box, how=draw(st.sampled_from((How.INNER, How.LEFT))))


def _sides(draw: st.DrawFn, left: Stream, right: Stream) -> tuple[tuple[Pair, ...], dict[str, str]]:
    """The compared and the selected columns."""
    select = {
        f"j{i}": f"`{side}`.`{_column(draw, stream)}`"
        for i, (side, stream) in enumerate((("left", left), ("right", right)))
    }
    return ((_column(draw, left), _column(draw, right)),), select


def _join(draw: st.DrawFn, name: str, left: Stream, right: Stream) -> Join:
    bound = draw(st.sampled_from(((0, 0), (-5, 15))))
    return replace(joined(name, left, right, *_sides(draw, left, right), bound), how=draw(HOWS))


OF_ONE_STREAM: Mapping[str, Callable[[st.DrawFn, str, Stream], list[Box]]] = {
    "aggregate": _aggregate,
    "deduplicate": _deduplicate,
    "filter": _filter,
    "flat_map": _flat_map,
    "map": _map,
    "python": _python,
    "route": _route,
    "top": _top,
    "twins": _twins,
}
