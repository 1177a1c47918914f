"""History of the nodes that have run a fragment, from the event log. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pipeline.event_log.event import EventKind, LoggedEvent
from pipeline.ids import Millis


@dataclass(frozen=True, slots=True)
class Stay:
    """One ownership of a fragment by a node.

    Args:
        node: its name.
        epoch: of the ownership.
        since_ms: when it was claimed.
        why: why that node, in the words of the claim.
        gap_ms: from the last batch of the owner before until its query began; None: it has not
            begun, or nothing was written before.
    """

    node: str
    epoch: str
    since_ms: Millis
    why: str
    gap_ms: int | None = None


def stays(events: Iterable[LoggedEvent], network: str, fragment: str) -> tuple[Stay, ...]:
    """The ownerships of a fragment, oldest first.

    Args:
        events: entries of the event log, in their order.
        network: the name of its network.
        fragment: its name.
    """
    found: list[Stay] = []
    for event in events:
        if (event.network, event.fragment) != (network, fragment):
            continue
        facts = dict(event.facts)
        if event.kind == EventKind.CLAIMED:
            found.append(Stay(event.node, facts.get("epoch", ""), event.at_ms, event.why))
        elif event.kind == EventKind.STARTED and found and found[-1].gap_ms is None:
            gap_ms = dict(event.parts_ms).get("since_last_batch")
            if facts.get("epoch") == found[-1].epoch:
                found[-1] = replace(found[-1], gap_ms=gap_ms)
    return tuple(found)
