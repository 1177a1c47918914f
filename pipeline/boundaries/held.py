"""Which input holds a lane's event time back. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pipeline.boundaries.external import InputTime
from pipeline.ids import SteadyMillis, StreamName

HELD_LEAST_MS = 10_000
"""By how much an input has to hold event time back to be named: twice what a stream may be late by
default. Inputs that are read in turn are always a little apart."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """The input that holds a lane's event time back.

    Args:
        stream: which one.
        by_ms: how far it is behind the furthest active input; None: it has no boundary at all.
        since_ms: since when it is the one (steady time).
        silent_since_ms: since when nothing has come in it (steady time); None: it is not silent.
    """

    stream: StreamName
    by_ms: int | None
    since_ms: SteadyMillis
    silent_since_ms: SteadyMillis | None = None


def held_back(
    before: HeldBack | None,
    found: Mapping[StreamName, InputTime],
    silent: Mapping[StreamName, SteadyMillis],
    derived: Collection[StreamName],
    now_ms: SteadyMillis,
) -> HeldBack | None:
    """The input that holds event time back, if one is to be named.

    A derived input with a boundary is not: its writer's own status says why it is there, and a
    window's results are behind by nature. When all active inputs are silent, event time waits for
    the one that fell silent last, however near they are to each other.

    Args:
        before: what this said the last time.
        found: how far each input lets event time move.
        silent: external inputs that are silent, and since when.
        derived: which inputs are derived.
        now_ms: steady time.
    """
    most = _most_behind(found)
    if most is not None:
        stream, by_ms = most
        if by_ms is None or (by_ms >= HELD_LEAST_MS and stream not in derived):
            same = before is not None and before.stream == stream
            since_ms = before.since_ms if before is not None and same else now_ms
            return HeldBack(stream, by_ms, since_ms, silent.get(stream))
    active = {stream for stream, one in found.items() if not one.idle}
    if not active or active - silent.keys():
        return None
    last = max(sorted(active), key=lambda stream: silent[stream])
    return HeldBack(last, 0, silent[last], silent[last])


def _most_behind(inputs: Mapping[StreamName, InputTime]) -> tuple[StreamName, int | None] | None:
    """Which active input holds event time back, and by how much in ms against the furthest one.

    None as the amount: it has no boundary, and another input has one. None at all: no input does.
    """
    active = {name: one.boundary for name, one in inputs.items() if not one.idle}
    known = {name: boundary.at_ms for name, boundary in active.items() if boundary is not None}
    others = any(one.boundary is not None for one in inputs.values())
    for name, boundary in active.items():
        if boundary is None and others:
            return name, None
    if len(known) < len(active) or len(known) <= 1:
        return None
    least = min(known, key=lambda name: known[name])
    return least, max(known.values()) - known[least]
