"""Detection of the input that holds a lane's event time back. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pipeline.boundaries.external import InputTime
from pipeline.ids import SteadyMillis, StreamName

HELD_LEAST_MS = 10_000
"""Minimum distance behind the furthest input for an input to be named: twice the default lateness
of a stream. Inputs that are read in turn always differ a little."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """The input that holds a lane's event time back.

    Args:
        stream: the input.
        by_ms: how far it is behind the furthest active input; None: it has no boundary at all.
        since_ms: since when it has held event time back (steady time).
        silent_since_ms: start of its silence (steady time); None: it is not silent.
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
    """Find the input that holds event time back; None: none is named.

    A derived input with a boundary is not named: the status of its writer gives the reason, and
    results of windows are behind by nature. When all active inputs are silent, the one that fell
    silent last is named, however small the distance.

    Args:
        before: the previous result.
        found: boundary and idleness of each input.
        silent: silent external inputs, with the start of their silence.
        derived: derived inputs.
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
    """The active input that is furthest behind, and its distance in ms from the furthest one.

    The distance is None if it has no boundary and another input has one; the result is None if no
    input is behind.
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
