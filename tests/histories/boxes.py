"""Reference implementation of a document's boxes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from tests.histories.documents import Box, Net


@dataclass(frozen=True, slots=True)
class Seen:
    """A row: event time and columns."""

    at: int
    values: Mapping[str, int]


Streams = Mapping[str, list[Seen]]


def flow(net: Net, name: str, rows: Streams) -> list[Seen]:
    """The rows of a stream, computed from others through stateless boxes."""
    if name in rows:
        return list(rows[name])
    box = net.box(name)
    assert box is not None, f"{name} is no box, and nobody says what it holds"
    match box.kind:
        case "filter":
            return [row for row in flow(net, box.inputs[0], rows) if row.values["v"] > box.number]
        case "map":
            return [_mapped(row, box.number) for row in flow(net, box.inputs[0], rows)]
        case "union":
            return [row for one in box.inputs for row in flow(net, one, rows)]
        case _:
            raise AssertionError(f"{name} keeps a state")


def _mapped(row: Seen, number: int) -> Seen:
    values = {"id": row.values["id"], "k": row.values["k"], "v": row.values["v"] + number}
    return replace(row, values=values)


def core(net: Net, name: str, inputs: frozenset[str]) -> Box | None:
    """The stateful box of a fragment, if it has one."""
    while name not in inputs:
        box = net.box(name)
        if box is None or box.kind == "union":
            return None
        if box.kind in ("aggregate", "join"):
            return box
        name = box.inputs[0]
    return None


def windows(rows: Iterable[Seen], size: int, after: int, until: int) -> Iterator[Seen]:
    """The results of the windows that end in (after, until]."""
    groups: dict[tuple[int, int], list[Seen]] = {}
    for row in rows:
        end = row.at - row.at % size + size
        if after < end <= until:
            groups.setdefault((end, row.values["k"]), []).append(row)
    for (end, k), members in groups.items():
        values = {"k": k, "window_start": end - size, "window_end": end}
        values["id"] = sum(row.values["id"] for row in members)
        values["v"] = sum(row.values["v"] for row in members)
        yield Seen(end, values)


def pairs(lefts: Iterable[Seen], rights: Iterable[Seen], within: int) -> Iterator[Seen]:
    """All pairs of a join."""
    by_key: dict[int, list[Seen]] = {}
    for right in rights:
        by_key.setdefault(right.values["k"], []).append(right)
    for left in lefts:
        for right in by_key.get(left.values["k"], ()):
            if abs(left.at - right.at) <= within:
                values = {name: left.values[name] + right.values[name] for name in ("id", "v")}
                yield Seen(max(left.at, right.at), {**values, "k": left.values["k"]})
