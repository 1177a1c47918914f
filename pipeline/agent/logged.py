"""The entries that a node writes into the event log. Pure."""

from pipeline.agent.effects import LogEvent
from pipeline.agent.events import Event
from pipeline.agent.now import Now
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import Failed, Fenced, Lane, Running, Shared, Starting, Stopping
from pipeline.catalog.fragment_owners import Claim
from pipeline.catalog.records import NodeRecord, OwnerRecord, Transfer
from pipeline.event_log.event import EventKind, LoggedEvent
from pipeline.ids import FragmentId, Millis, NodeId
from pipeline.lanes.events import LaneStarted, LaneStopped
from pipeline.markers.commit_marker import NO_BATCH


def log_run(before: Lane, after: Lane, shared: Shared, event: Event, now: Now) -> Effects:
    """What an event of a lane adds to the event log.

    Args:
        before: the lane before the event.
        after: the same lane after it.
        shared: what all lanes share.
        event: of any lane.
        now: the present.
    """
    match event:
        case LaneStarted(lane=lane) if lane == after.id:
            found = _started(before, event, now)
        case LaneStopped(lane=lane, run=run) if lane == after.id and run == after.run:
            found = _stopped(before, after, event, now)
        case _:
            return ()
    return () if found is None else (LogEvent(_of_lane(found, after.id.fragment, shared.node)),)


def _of_lane(found: LoggedEvent, fragment: FragmentId, node: NodeId) -> LoggedEvent:
    return LoggedEvent(
        at_ms=found.at_ms,
        kind=found.kind,
        by=_node(node),
        network=fragment.network.name,
        fragment=fragment.fragment,
        node=node,
        why=found.why,
        facts=found.facts,
        parts_ms=found.parts_ms,
    )


def _started(before: Lane, event: LaneStarted, now: Now) -> LoggedEvent | None:
    phase = before.phase.start if isinstance(before.phase, Stopping) else before.phase
    if event.run != before.run or not isinstance(phase, Starting):
        return None
    marker, rebuilding = event.marker, phase.rebuilding
    parts = [("start", now.steady_ms - phase.since_ms)]
    if rebuilding is not None:
        parts.insert(0, ("state", now.steady_ms - rebuilding.since_ms))
    if marker.batch != NO_BATCH or marker.totals.records_in:
        parts.insert(0, ("since_last_batch", max(0, now.wall_ms - marker.written_at_ms)))
    facts = (
        ("epoch", str(event.epoch)),
        ("version", str(phase.desired.version)),
        ("incarnation", marker.incarnation),
        ("batch", str(marker.batch)),
    )
    how = "" if rebuilding is None else "its state was rebuilt from the log"
    return LoggedEvent(
        now.wall_ms, EventKind.STARTED, "", why=how, facts=facts, parts_ms=tuple(parts)
    )


def _stopped(before: Lane, after: Lane, event: LaneStopped, now: Now) -> LoggedEvent | None:
    """A failure, unless the lane has failed by the same error just before."""
    facts = (("epoch", str(event.epoch)),) if event.epoch else ()
    why, phase = after.tries.last_error, after.phase
    if isinstance(phase, Fenced):
        return LoggedEvent(now.wall_ms, EventKind.FENCED, "", why=why, facts=facts)
    given_up = isinstance(phase, Failed)
    asked = isinstance(before.phase, Stopping) and event.error is None
    again = why == before.tries.last_error and not isinstance(before.phase, Running)
    if asked or (again and not given_up):
        return None
    facts = (*facts, ("given_up", "yes" if given_up else "no"))
    return LoggedEvent(now.wall_ms, EventKind.FAILED, "", why=why, facts=facts)


def claimed(
    fragment: FragmentId, node: NodeRecord, claim: Claim, now_ms: Millis
) -> LoggedEvent | None:
    """A claim that has changed the owner; None: the node in its present life has claimed again."""
    before, move = claim.before, claim.move
    if before is not None and before.is_of(node):
        return None
    parts = () if move is None else (("since_request", now_ms - move.asked_at_ms),)
    origin = "" if before is None else before.node
    if move is not None and move.to == node.node:
        why, origin = f"moved from node {move.source}", move.source
    elif before is None:
        why = "it had no owner"
    elif before.node == node.node:
        why = "the node was started again"
    else:
        why = f"node {before.node} is down"
    facts = (("epoch", str(claim.epoch)), *((("from", origin),) if origin else ()))
    return LoggedEvent(
        now_ms,
        EventKind.CLAIMED,
        _node(node.node),
        network=fragment.network.name,
        fragment=fragment.fragment,
        node=node.node,
        why=why,
        facts=facts,
        parts_ms=parts,
    )


def released(fragment: FragmentId, owner: OwnerRecord, to: NodeId, now_ms: Millis) -> LoggedEvent:
    """A release by the owner."""
    return LoggedEvent(
        now_ms,
        EventKind.RELEASED,
        _node(owner.node),
        network=fragment.network.name,
        fragment=fragment.fragment,
        node=owner.node,
        why=f"node {to} is to run it",
        facts=(("epoch", str(owner.epoch)), ("to", to)),
    )


def of_transfer(
    kind: EventKind, transfer: Transfer, by: NodeId, now_ms: Millis, why: str = ""
) -> LoggedEvent:
    """A step of a move, as seen by a node."""
    return LoggedEvent(
        now_ms,
        kind,
        _node(by),
        network=transfer.network.name,
        fragment=transfer.fragment,
        node=transfer.to,
        why=why,
        facts=(("from", transfer.source), ("to", transfer.to)),
        parts_ms=(("since_request", max(0, now_ms - transfer.asked_at_ms)),),
    )


def of_node(kind: EventKind, record: NodeRecord, now_ms: Millis) -> LoggedEvent:
    """The start or the end of a node."""
    labels = ",".join(f"{name}={value}" for name, value in record.labels)
    known = (
        ("version", record.version),
        ("labels", labels),
        ("capacity", str(record.capacity or "")),
        ("host", record.host),
    )
    facts = tuple((name, value) for name, value in known if value)
    return LoggedEvent(now_ms, kind, _node(record.node), node=record.node, facts=facts)


def entries_lost(number: int, node: NodeId, now_ms: Millis) -> LoggedEvent:
    """Entries that a node could not write."""
    facts = (("entries", str(number)),)
    return LoggedEvent(now_ms, EventKind.ENTRIES_LOST, _node(node), node=node, facts=facts)


def _node(name: NodeId) -> str:
    return f"node {name}"
