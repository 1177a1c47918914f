"""History of the nodes that have run a fragment, from the event log. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from pipeline.event_log.event import EventKind, LoggedEvent
from pipeline.ids import Millis

NO_OWNER: Final = "it had no owner"
KINDS: Final = frozenset(
    {EventKind.CLAIMED, EventKind.STARTED, EventKind.RELEASED, EventKind.DESTROYED}
)
"""The entries of a network that are needed."""


@dataclass(frozen=True, slots=True)
class Stay:
    """One ownership of a fragment by a node.

    Args:
        node: its name.
        epoch: of the ownership.
        since_ms: when it was claimed.
        why: why that node.
        gap_ms: from the last batch of the owner before until its query began, 0 if there
            was none; None: it has not begun.
    """

    node: str
    epoch: str
    since_ms: Millis
    why: str
    gap_ms: int | None = None


def stays(events: Iterable[LoggedEvent], network: str, fragment: str) -> tuple[Stay, ...]:
    """The ownerships of a fragment since its network was last destroyed, oldest first.

    Args:
        events: entries of the event log, in their order.
        network: the name of its network.
        fragment: its name.
    """
    found: list[Stay] = []
    released_by = ""
    for event in events:
        if event.kind == EventKind.DESTROYED and event.network == network:
            found, released_by = [], ""
        if (event.network, event.fragment) != (network, fragment):
            continue
        epoch = dict(event.facts).get("epoch", "")
        if event.kind == EventKind.RELEASED:
            released_by = event.node
        elif event.kind == EventKind.CLAIMED:
            why = event.why
            if why == NO_OWNER and released_by:
                why = f"released by node {released_by}"
            found.append(Stay(event.node, epoch, event.at_ms, why))
            released_by = ""
        elif event.kind == EventKind.STARTED and found and _is_first_of(event, epoch, found[-1]):
            gap_ms = dict(event.parts_ms).get("since_last_batch", 0)
            found[-1] = replace(found[-1], gap_ms=gap_ms)
    return tuple(found)


def _is_first_of(event: LoggedEvent, epoch: str, stay: Stay) -> bool:
    """Whether a start is the first one of a stay: an earlier try may have failed, and claimed."""
    is_later = epoch.isdigit() and stay.epoch.isdigit() and int(epoch) >= int(stay.epoch)
    return stay.gap_ms is None and event.node == stay.node and is_later
