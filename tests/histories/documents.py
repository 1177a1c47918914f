"""Model of a changing network: a document, its text, and the next document.

Every stream and box has the columns `id`, `k` and `v`; its further columns are its shape. So
boxes can be chained in any order, and the reference can compute them without the planner.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

NETWORK: Final = "net"
WINDOW_MS: Final = 8_000
WITHIN_MS: Final = 3_000
TOPICS: Final = ("t0", "t1", "t2", "t3")
"""External topics; each has at most one stream in a document."""
RELIABILITY: Final = "reliability"
FORGET: Final = "forget"
FORGETS: Final = -1
"""Instead of a number of secondaries: a lost state is not built again."""
RECOVERY: Final = "recovery"
PRIORITY: Final = "priority"
PRIORITIES: Final = ("high", "normal", "low")
TRIM: Final = "trim"
PLACE: Final = "place"
ELSEWHERE: Final = "{nodes: zone!=z}"
"""Every node of a history may run it, and no box is placed so by default: it ends a fragment."""
RESTARTS_NOTHING: Final = frozenset({RELIABILITY, FORGET, PRIORITY, TRIM})
STATEFUL: Final = frozenset({"aggregate", "join"})


@dataclass(frozen=True, slots=True)
class Stream:
    """An external stream; times are in milliseconds."""

    name: str
    topic: str
    lateness_ms: int = 2_000
    ahead_ms: int = 60_000
    kind: str = "int"


@dataclass(frozen=True, slots=True)
class Box:
    """A box.

    `number`: the bound of a filter (`v > number`), the summand of a map, the window of an
    aggregate in milliseconds, the bound of a join in milliseconds; nothing for a union.
    `secondaries`: its reliability; None: that of the network. `priority`: the same. `is_placed`:
    whether it has a placement of its own.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    number: int = 0
    secondaries: int | None = None
    priority: str | None = None
    is_placed: bool = False

    @property
    def text(self) -> str:
        """The box in YAML."""
        text = _TEXTS[self.kind](self)
        if self.is_placed:
            text = f"{text[:-1]}, placement: {ELSEWHERE}}}"
        if self.secondaries is not None:
            text = f"{text[:-1]}, reliability: {_reliability_text(self.secondaries)}}}"
        return text if self.priority is None else f"{text[:-1]}, priority: {self.priority}}}"


@dataclass(frozen=True, slots=True)
class Net:
    """One document.

    `secondaries`, `rolls_back`: its reliability. `priority`: of its fragments. `trims`: whether
    internal topics are kept by need. `name`: of the network; each network has separate topics.
    """

    streams: tuple[Stream, ...]
    boxes: tuple[Box, ...]
    outputs: Mapping[str, str] = field(default_factory=dict)
    retention: str = "7d"
    partitions: int = 2
    secondaries: int = 0
    priority: str = "normal"
    trims: bool = False
    rolls_back: bool = False
    name: str = NETWORK

    def placed(self, topic: str) -> str:
        """The Kafka topic of a stream's or an output's topic."""
        return topic if self.name == NETWORK else f"{self.name}-{topic}"

    @property
    def text(self) -> str:
        """The document in YAML."""
        lines = [f"network: {self.name}", f"retention: {self.retention}"]
        lines.append(f"partitions: {self.partitions}")
        if self.trims:
            lines.append("internal_retention: needed")
        if self.secondaries or self.rolls_back:
            lines.append(f"reliability: {_reliability_text(self.secondaries, self.rolls_back)}")
        if self.priority != "normal":
            lines.append(f"priority: {self.priority}")
        lines.append("streams:")
        lines += [
            f"  {s.name}: {{topic: {self.placed(s.topic)}, schema: {s.name}.avsc, event_time: at, "
            f"lateness: {s.lateness_ms}ms, idle_after: 10s, ahead: {s.ahead_ms}ms}}"
            for s in self.streams
        ]
        lines.append("boxes:")
        lines += [f"  {box.name}: {box.text}" for box in self.boxes]
        lines.append("outputs:")
        outputs = sorted(self.outputs.items())
        lines += [f"  {box}: {{topic: {self.placed(topic)}}}" for box, topic in outputs]
        return "\n".join(lines) + "\n"

    @property
    def schemas(self) -> dict[str, str]:
        """The Avro schema of each stream."""
        return {s.name: schema_of(s.kind) for s in self.streams}

    def box(self, name: str) -> Box | None:
        """A box by its name."""
        return next((box for box in self.boxes if box.name == name), None)

    def stream(self, name: str) -> Stream | None:
        """A stream by its name."""
        return next((stream for stream in self.streams if stream.name == name), None)

    def columns(self, name: str) -> frozenset[str]:
        """The columns of a stream."""
        more = {"row": ("at",), "window": ("window_start", "window_end")}
        return frozenset(("id", "k", "v", *more.get(self.shape(name).split()[0], ())))

    def shape(self, name: str) -> str:
        """The columns of a stream, and the type of `v`."""
        stream, box = self.stream(name), self.box(name)
        if stream is not None:
            return f"row {stream.kind}"
        assert box is not None
        match box.kind:
            case "aggregate":
                return "window"
            case "join" | "map":
                return f"plain {box.name if box.kind == 'join' else self.shape(box.inputs[0])}"
            case _:
                return self.shape(box.inputs[0])


def schema_of(kind: str) -> str:
    """The Avro schema of an external stream."""
    time = {"type": "long", "logicalType": "timestamp-millis"}
    types = {"id": "long", "k": "int", "v": kind, "at": time}
    fields = [{"name": name, "type": one} for name, one in types.items()]
    return json.dumps({"type": "record", "name": "Row", "fields": fields})


def _reliability_text(secondaries: int, rolls_back: bool = False) -> str:  # noqa: FBT001, FBT002
    """A reliability in YAML."""
    if secondaries == FORGETS:
        return "{mode: amnesia, recovery: rollback}" if rolls_back else "amnesia"
    if rolls_back:
        more = f"active_standby, secondaries: {secondaries}" if secondaries else "upstream_backup"
        return f"{{mode: {more}, recovery: rollback}}"
    if secondaries > 1:
        return f"{{mode: active_standby, secondaries: {secondaries}}}"
    return "active_standby" if secondaries else "upstream_backup"


_TEXTS: Mapping[str, Callable[[Box], str]] = {
    "filter": lambda box: f"{{filter: {box.inputs[0]}, where: v > {box.number}}}",
    "map": lambda box: f"{{map: {box.inputs[0]}, select: {{id: id, k: k, v: v + {box.number}}}}}",
    "union": lambda box: f"{{union: [{', '.join(box.inputs)}]}}",
    "aggregate": lambda box: (
        f"{{aggregate: {box.inputs[0]}, by: [k], window: {box.number}ms, "
        "compute: {id: sum(id), v: sum(v)}}"
    ),
    "join": lambda box: (
        f"{{join: {{left: {box.inputs[0]}, right: {box.inputs[1]}, on: [k], "
        f"within: {box.number}ms}}, select: {{id: left.id + right.id, k: k, "
        "v: left.v + right.v}}"
    ),
}

# --- the first document ---------------------------------------------------------------------------


def first(rng: Random, name: str = NETWORK) -> Net:
    """The first document: one to three streams, each over a topic, and one to four boxes."""
    streams = [Stream(f"s{n}", f"t{n}") for n in range(rng.choice((1, 2, 2, 3)))]
    net = Net(tuple(streams), (), name=name)
    for n in range(rng.choice((1, 2, 2, 3, 4))):
        net = replace(net, boxes=(*net.boxes, _box(net, f"b{n}", rng)))
    used = {name for box in net.boxes for name in box.inputs}
    ends = [box.name for box in net.boxes if box.name not in used]
    more = [box.name for box in net.boxes if box.name in used and rng.random() < 0.2]
    net = replace(net, outputs={name: f"o-{name}" for name in (*ends, *more)})
    return _with_used_streams(net)


def _box(net: Net, name: str, rng: Random) -> Box:
    there = [*(s.name for s in net.streams), *(b.name for b in net.boxes)]
    one = rng.choice(there[-3:])
    alike = [other for other in there if net.shape(other) == net.shape(one) and other != one]
    kinds = ["filter", "map", "aggregate", "join"] + (["union"] * 2 if alike else [])
    kind = rng.choice(kinds)
    match kind:
        case "union":
            return Box(name, kind, (one, rng.choice(alike)))
        case "join":
            return Box(name, kind, (one, rng.choice(there[-3:])), WITHIN_MS)
        case "aggregate":
            return Box(name, kind, (one,), WINDOW_MS)
        case _:
            return Box(name, kind, (one,), rng.randrange(3))


def _with_used_streams(net: Net) -> Net:
    """Without unread streams, which a document may have, and which have no effect."""
    used = {name for box in net.boxes for name in box.inputs}
    return replace(net, streams=tuple(s for s in net.streams if s.name in used))


# --- the next document ----------------------------------------------------------------------------

Change = Callable[[Net, Random], Net | None]
"""The next document; None if no change of the kind is possible."""


def rename(net: Net, old: str, new: str) -> Net:
    """Rename a stream or a box, with all its readers."""
    boxes = tuple(
        replace(
            box,
            name=new if box.name == old else box.name,
            inputs=tuple(new if name == old else name for name in box.inputs),
        )
        for box in net.boxes
    )
    streams = tuple(replace(s, name=new) if s.name == old else s for s in net.streams)
    outputs = {new if name == old else name: topic for name, topic in net.outputs.items()}
    return replace(net, streams=streams, boxes=boxes, outputs=outputs)


def _fresh(net: Net, prefix: str) -> str:
    taken = {s.name for s in net.streams} | {b.name for b in net.boxes}
    return next(name for n in range(100) if (name := f"{prefix}{n}") not in taken)


def _rename_stream(net: Net, rng: Random) -> Net | None:
    return rename(net, rng.choice(net.streams).name, _fresh(net, "s"))


def _rename_inner(net: Net, rng: Random) -> Net | None:
    inner = [box.name for box in net.boxes if box.name not in net.outputs]
    return rename(net, rng.choice(inner), _fresh(net, "b")) if inner else None


def _rename_last(net: Net, rng: Random) -> Net | None:
    return rename(net, rng.choice(sorted(net.outputs)), _fresh(net, "b"))


def _rename_topic(net: Net, rng: Random) -> Net | None:
    box = rng.choice(sorted(net.outputs))
    return replace(net, outputs={**net.outputs, box: f"o{rng.randrange(3)}-{box}"})


def _retype(net: Net, rng: Random) -> Net | None:
    """Change all streams, so that unions stay valid."""
    del rng
    kind = "long" if net.streams[0].kind == "int" else "int"
    return replace(net, streams=tuple(replace(s, kind=kind) for s in net.streams))


def _select(net: Net, rng: Random) -> Net | None:
    return _with_number(net, rng, ("filter", "map"), rng.randrange(3))


def _window(net: Net, rng: Random) -> Net | None:
    return _with_number(net, rng, ("aggregate",), rng.choice((4_000, WINDOW_MS, 12_000)))


def _with_number(net: Net, rng: Random, kinds: tuple[str, ...], number: int) -> Net | None:
    found = [box for box in net.boxes if box.kind in kinds and box.number != number]
    if not found:
        return None
    chosen = rng.choice(found)
    boxes = tuple(replace(b, number=number) if b == chosen else b for b in net.boxes)
    return replace(net, boxes=boxes)


def _add_input(net: Net, rng: Random) -> Net | None:
    """Add a stream to a union, or replace a box's input by a union with another stream."""
    unions = [box for box in net.boxes if box.kind == "union"]
    free = sorted({*TOPICS} - {s.topic for s in net.streams})
    if not free:
        return None
    source = Stream(_fresh(net, "s"), rng.choice(free), kind=net.streams[0].kind)
    if unions:
        chosen = rng.choice(unions)
        if not net.shape(chosen.name).startswith("row"):
            return None
        grown = replace(chosen, inputs=(*chosen.inputs, source.name))
        boxes = tuple(grown if box == chosen else box for box in net.boxes)
        return replace(net, streams=(*net.streams, source), boxes=boxes)
    readers = [b for b in net.boxes if net.stream(b.inputs[0]) is not None]
    if not readers:
        return None
    reader = rng.choice(readers)
    union = Box(_fresh(net, "u"), "union", (reader.inputs[0], source.name))
    changed = replace(reader, inputs=(union.name, *reader.inputs[1:]))
    at = net.boxes.index(reader)
    boxes = (*net.boxes[:at], union, changed, *net.boxes[at + 1 :])
    return replace(net, streams=(*net.streams, source), boxes=boxes)


def _remove_input(net: Net, rng: Random) -> Net | None:
    """Remove a stream from a union; replace a union of one stream by the stream."""
    unions = [box for box in net.boxes if box.kind == "union"]
    if not unions:
        return None
    chosen = rng.choice(unions)
    gone = rng.randrange(len(chosen.inputs))
    left = tuple(name for at, name in enumerate(chosen.inputs) if at != gone)
    if len(left) > 1:
        shrunk = replace(chosen, inputs=left)
        boxes = tuple(shrunk if box == chosen else box for box in net.boxes)
    elif chosen.name in net.outputs:
        boxes = tuple(
            Box(chosen.name, "map", left, 0) if box == chosen else box for box in net.boxes
        )
    else:
        boxes = tuple(
            replace(b, inputs=tuple(left[0] if n == chosen.name else n for n in b.inputs))
            for b in net.boxes
            if b != chosen
        )
    return _with_used_streams(replace(net, boxes=boxes))


def _move_out(net: Net, rng: Random) -> Net | None:
    inner = [box.name for box in net.boxes if box.name not in net.outputs]
    if not inner:
        return None
    name = rng.choice(inner)
    return replace(net, outputs={**net.outputs, name: f"o-{name}"})


def _move_in(net: Net, rng: Random) -> Net | None:
    used = {name for box in net.boxes for name in box.inputs}
    found = [name for name in sorted(net.outputs) if name in used]
    if not found:
        return None
    gone = rng.choice(found)
    return replace(net, outputs={n: t for n, t in net.outputs.items() if n != gone})


def _place(net: Net, rng: Random) -> Net | None:
    """Place a box inside a fragment elsewhere, or one that is, back."""
    there = [box for box in net.boxes if box.is_placed]
    inside = [box for box in net.boxes if box.name not in net.outputs] or [*net.boxes]
    chosen = rng.choice(there if there and rng.random() < 0.5 else inside)
    new = replace(chosen, is_placed=not chosen.is_placed)
    return replace(net, boxes=tuple(new if box == chosen else box for box in net.boxes))


def _lateness(net: Net, rng: Random) -> Net | None:
    return _of_stream(net, rng, lateness_ms=rng.choice((500, 2_000, 6_000)))


def _ahead(net: Net, rng: Random) -> Net | None:
    return _of_stream(net, rng, ahead_ms=rng.choice((1_000, 60_000)))


def _of_stream(net: Net, rng: Random, **changed: int) -> Net | None:
    chosen = rng.choice(net.streams)
    ahead, lateness = changed.get("ahead_ms"), changed.get("lateness_ms")
    new = replace(
        chosen,
        ahead_ms=chosen.ahead_ms if ahead is None else ahead,
        lateness_ms=chosen.lateness_ms if lateness is None else lateness,
    )
    if new == chosen:
        return None
    return replace(net, streams=tuple(new if s == chosen else s for s in net.streams))


def _retention(net: Net, rng: Random) -> Net | None:
    del rng
    return replace(net, retention="8d" if net.retention == "7d" else "7d")


def _partitions(net: Net, rng: Random) -> Net | None:
    return replace(net, partitions=rng.choice([n for n in (1, 2, 3) if n != net.partitions]))


def _reliability(net: Net, rng: Random) -> Net | None:
    """Set the secondaries of the network or of a box, or remove them."""
    if rng.random() < 0.6:
        return replace(net, secondaries=rng.choice([n for n in (0, 1, 2) if n != net.secondaries]))
    chosen = rng.choice(net.boxes)
    number = rng.choice([n for n in (None, 0, 1, 2) if n != chosen.secondaries])
    boxes = tuple(replace(b, secondaries=number) if b == chosen else b for b in net.boxes)
    return replace(net, boxes=boxes)


def _forget(net: Net, rng: Random) -> Net | None:
    """Begin to leave out what a lost state was made of, or cease to."""
    del rng
    return replace(net, secondaries=0 if net.secondaries == FORGETS else FORGETS)


def _recovery(net: Net, rng: Random) -> Net | None:
    del rng
    return replace(net, rolls_back=not net.rolls_back)


def _trim(net: Net, rng: Random) -> Net | None:
    del rng
    return replace(net, trims=not net.trims)


def _priority(net: Net, rng: Random) -> Net | None:
    """Set the priority of the network or of a box."""
    if rng.random() < 0.3:
        return replace(net, priority=rng.choice([p for p in PRIORITIES if p != net.priority]))
    chosen = rng.choice(net.boxes)
    priority = rng.choice([p for p in (None, *PRIORITIES) if p != chosen.priority])
    boxes = tuple(replace(b, priority=priority) if b == chosen else b for b in net.boxes)
    return replace(net, boxes=boxes)


CHANGES: Mapping[str, Change] = {
    "rename_stream": _rename_stream,
    "rename_inner": _rename_inner,
    "rename_last": _rename_last,
    "rename_topic": _rename_topic,
    "retype": _retype,
    "select": _select,
    "window": _window,
    "add_input": _add_input,
    "remove_input": _remove_input,
    "move_out": _move_out,
    "move_in": _move_in,
    "lateness": _lateness,
    "ahead": _ahead,
    "retention": _retention,
    "partitions": _partitions,
    RELIABILITY: _reliability,
    FORGET: _forget,
    RECOVERY: _recovery,
    PRIORITY: _priority,
    TRIM: _trim,
    PLACE: _place,
}
"""Changes of a deploy, by their names in scripts."""
NEEDS_NOTHING: Final = frozenset(
    {"rename_stream", "retention", "partitions", "lateness", "ahead"}
    | RESTARTS_NOTHING
    | {RECOVERY}
)
"""Changes after which every fragment continues, so that no choice is required."""
