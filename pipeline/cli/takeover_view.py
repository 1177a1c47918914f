"""What a takeover of a fragment would cost now, as commands print it: text and data. Pure."""

from collections.abc import Iterator

from pipeline.cli.times import span, time_text
from pipeline.clock import rfc3339
from pipeline.event_log.timings import Timing
from pipeline.ids import Millis
from pipeline.operations.status.takeover import TakeoverNow, TakeoverWay
from schemas.json_value import JsonObject

_KIB = 1024
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def takeover_text(found: TakeoverNow, now_ms: Millis) -> str:
    """What the node would do, and how long the newest takeover took, or the newest start."""
    timings = found.timings
    took = ""
    if timings.takeover is not None:
        took = f"; the last took {span(timings.takeover.total_ms)}"
    elif timings.start is not None:
        took = f"; the last start took {span(timings.start.total_ms)}"
    return f"{_way(found, now_ms)}{took}"


def measured_lines(found: TakeoverNow, now_ms: Millis) -> Iterator[str]:
    """The same by parts, a line for each fact."""
    yield f"if its node failed now: {_way(found, now_ms)}"
    if found.state_bytes:
        yield f"state: {size_text(found.state_bytes)}, by the newest copy"
    for what, timing in (("takeover", found.timings.takeover), ("start", found.timings.start)):
        if timing is not None:
            parts = ", ".join(f"{name} {span(took)}" for name, took in timing.parts_ms)
            why = f"; {timing.why}" if timing.why else ""
            at = rfc3339(timing.at_ms)
            yield f"last {what}: {span(timing.total_ms)} on {timing.node}, {at} ({parts}){why}"


def takeover_data(found: TakeoverNow | None) -> JsonObject | None:
    """The same for programs; None: nothing stands by."""
    if found is None:
        return None
    return {
        "way": found.way.value,
        "node": found.node,
        "reached": time_text(found.reached_ms),
        "state_bytes": found.state_bytes or None,
        "last_takeover": _timing_data(found.timings.takeover),
        "last_start": _timing_data(found.timings.start),
    }


def size_text(size: int) -> str:
    """A size that was measured, in short form.

    >>> [size_text(n) for n in (12, 1536, 5 << 20)]
    ['12 B', '1.5 KiB', '5.0 MiB']
    """
    number, unit = float(size), 0
    while number >= _KIB and unit + 1 < len(_UNITS):
        number, unit = number / _KIB, unit + 1
    return f"{number:.1f} {_UNITS[unit]}" if unit else f"{size} B"


def _way(found: TakeoverNow, now_ms: Millis) -> str:
    node = found.node or "another node"
    if found.way is not TakeoverWay.READS_SINCE:
        from_log = " from the log" if found.way is TakeoverWay.BUILDS else ""
        return f"{node} {found.way.value}{from_log}"
    if found.reached_ms is None:
        return f"{node} begins from what it has, nothing is missing"
    return f"{node} reads the last {span(max(0, now_ms - found.reached_ms))}"


def _timing_data(timing: Timing | None) -> JsonObject | None:
    if timing is None:
        return None
    return {
        "at": rfc3339(timing.at_ms),
        "node": timing.node,
        "why": timing.why,
        "ms": timing.total_ms,
        "parts_ms": dict(timing.parts_ms),
    }
