"""How long the newest takeover and the newest start of each fragment took, by parts. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pipeline.event_log.event import EventKind, LoggedEvent
from pipeline.ids import Millis

_AFTER: Final = frozenset({"first_result"})
"""Parts that follow the first new batch."""
_WITHIN: Final = frozenset({"state", "since_last_batch"})
"""Parts of a start that others contain, or that contain it."""


@dataclass(frozen=True, slots=True)
class Timing:
    """A takeover, or a start.

    Args:
        at_ms: when it was logged.
        node: that has the fragment since.
        why: of the entry.
        parts_ms: durations by name, as logged.
    """

    at_ms: Millis
    node: str
    why: str
    parts_ms: tuple[tuple[str, int], ...]

    @property
    def total_ms(self) -> int:
        """Until the first new batch was written, of a start until it was about to be executed."""
        return sum(took for name, took in self.parts_ms if name not in _AFTER | _WITHIN)


@dataclass(frozen=True, slots=True)
class Timings:
    """The newest takeover and the newest start of a fragment; None: none is logged."""

    takeover: Timing | None = None
    start: Timing | None = None


NO_TIMINGS: Final = Timings()


def newest_timings(events: Iterable[LoggedEvent]) -> Mapping[tuple[str, str], Timings]:
    """The newest ones by network and fragment.

    Args:
        events: entries of the event log, in their order.
    """
    takeovers, starts = dict[tuple[str, str], Timing](), dict[tuple[str, str], Timing]()
    for event in events:
        found = Timing(event.at_ms, event.node, event.why, event.parts_ms)
        if event.kind == EventKind.TAKEN_OVER:
            takeovers[event.network, event.fragment] = found
        elif event.kind == EventKind.STARTED:
            starts[event.network, event.fragment] = found
    return {
        name: Timings(takeovers.get(name), starts.get(name))
        for name in takeovers.keys() | starts.keys()
    }
