"""Detection of the input, or its partition, that holds a lane's event time back. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from pipeline.boundaries.external import InputTime
from pipeline.ids import SteadyMillis, StreamName

HELD_LEAST_MS = 10_000
"""Minimum distance behind the furthest input for an input to be named: twice the default lateness
of a stream. Inputs that are read in turn always differ a little."""
STILL_LEAST_MS = 30_000
"""Minimum time for which an input's records bring no event time, for it to be named."""


@dataclass(frozen=True, slots=True)
class Since:
    """External inputs that bring no event time now, with the steady time since when.

    Args:
        silent: all of its records are finished.
        still: its boundary has not risen, although records of it were read since.
        untimed: it has records, and none has given an event time.
    """

    silent: Mapping[StreamName, SteadyMillis] = field(default_factory=dict)
    still: Mapping[StreamName, SteadyMillis] = field(default_factory=dict)
    untimed: Mapping[StreamName, SteadyMillis] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HeldBack:
    """The input that holds a lane's event time back.

    Args:
        stream: the input.
        by_ms: how far it is behind the furthest active input; None: it has no boundary at all.
        since_ms: since when it has held event time back (steady time).
        silent_since_ms: start of its silence (steady time); None: it is not silent.
        partition: the one that holds it back, whose stream has others that do not; None: all do.
    """

    stream: StreamName
    by_ms: int | None
    since_ms: SteadyMillis
    silent_since_ms: SteadyMillis | None = None
    partition: int | None = None


def held_back(
    before: HeldBack | None,
    found: Mapping[StreamName, InputTime],
    since: Since,
    derived: Collection[StreamName],
    now_ms: SteadyMillis,
) -> HeldBack | None:
    """Find the input that holds event time back; None: none is named.

    A derived input with a boundary is not named: the status of its writer gives the reason, and
    results of windows are behind by nature. When all active inputs are silent, the one that fell
    silent last is named, however small the distance; when records come and bring no event time, the
    one that is least.

    Args:
        before: the previous result.
        found: boundary and idleness of each input.
        since: external inputs that bring no event time now.
        derived: derived inputs.
        now_ms: steady time.
    """
    silent, still, untimed = since.silent, since.still, since.untimed
    most = _most_behind(found, derived)
    if most is not None:
        stream, by_ms = most
        same = before is not None and before.stream == stream
        since_ms = before.since_ms if before is not None and same else now_ms
        held = HeldBack(stream, by_ms, since_ms, silent.get(stream))
        held = _of_partition(held, found[stream], now_ms)
        other = before is not None and same and held.partition != before.partition
        return replace(held, since_ms=now_ms) if other else held
    active = {stream: one.boundary for stream, one in found.items() if not one.idle}
    if active and not active.keys() - silent.keys():
        last = max(sorted(active), key=lambda stream: silent[stream])
        return HeldBack(last, 0, silent[last], silent[last])
    known = {stream: boundary.at_ms for stream, boundary in active.items() if boundary is not None}
    least = min(sorted(known), key=lambda stream: known[stream], default=None)
    if least is None:
        first = min(sorted(untimed.keys() & active.keys()), default=None)
        if first is None or now_ms - untimed[first] < STILL_LEAST_MS:
            return None
        return HeldBack(first, None, untimed[first])
    if now_ms - still.get(least, now_ms) < STILL_LEAST_MS:
        return None
    return HeldBack(least, 0, still[least], silent.get(least))


def _of_partition(held: HeldBack, one: InputTime, now_ms: SteadyMillis) -> HeldBack:
    """The same with the partition, if others of the stream are far enough ahead of it."""
    if one.slowest is None:
        return held
    ahead = one.slowest.furthest_ms
    if one.boundary is not None and ahead - one.boundary.at_ms < HELD_LEAST_MS:
        return held
    since_ms = one.slowest.silent_since_ms
    silent = since_ms is not None and now_ms - since_ms >= HELD_LEAST_MS
    return replace(
        held, partition=one.slowest.partition, silent_since_ms=since_ms if silent else None
    )


def _most_behind(
    inputs: Mapping[StreamName, InputTime], derived: Collection[StreamName]
) -> tuple[StreamName, int | None] | None:
    """The input that holds event time back, and how far in ms it is behind; None: none is, by much.

    It is behind the furthest other input, or another partition of its own. The distance is None if
    it has no boundary and something else has one. Of inputs that hold event time at nearly the same
    place, one that is far enough behind is named.
    """
    active = {name: one for name, one in inputs.items() if not one.idle}
    others = any(one.boundary is not None for one in inputs.values())
    for name, one in active.items():
        if one.boundary is None and (others or one.slowest is not None):
            return name, None
    known = {name: one.boundary.at_ms for name, one in active.items() if one.boundary is not None}
    if not known or len(known) < len(active):
        return None
    furthest, least = max(known.values()), min(known.values())
    for name in sorted(known.keys() - set(derived), key=lambda name: known[name]):
        slowest = active[name].slowest
        ahead = furthest if slowest is None else max(furthest, slowest.furthest_ms)
        if known[name] - least < HELD_LEAST_MS <= ahead - known[name]:
            return name, ahead - known[name]
    return None
