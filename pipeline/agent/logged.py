"""The entries that a node writes into the event log. Pure."""

from dataclasses import replace

from pipeline.agent.effects import LogEvent
from pipeline.agent.events import Event
from pipeline.agent.now import Now
from pipeline.agent.rules.rule import Effects
from pipeline.agent.rules.runs import SUCCESS_MS
from pipeline.agent.state import BackingOff, Failed, Fenced, Lane, Shared, Starting, Stopping
from pipeline.agent.takeover import Takeover, why_taken
from pipeline.agent.tentative import TentativeRun
from pipeline.catalog.fragment_owners import Claim
from pipeline.catalog.records import NodeRecord, OwnerRecord, Transfer
from pipeline.clock import rfc3339
from pipeline.event_log.event import EventKind, LoggedEvent, one_line
from pipeline.event_log.places import NO_OWNER
from pipeline.ids import Epoch, FragmentId, Millis, NodeId
from pipeline.lanes.events import LaneStarted
from pipeline.lanes.tentative_state import TentativeState, missing_text
from pipeline.markers.commit_marker import NO_BATCH, CommitMarker


def log_run(before: Lane, after: Lane, shared: Shared, event: Event, now: Now) -> Effects:
    """What an event of a lane adds to the event log.

    Args:
        before: the lane before the event.
        after: the same lane after it.
        shared: what all lanes share.
        event: of any lane.
        now: the present.
    """
    if isinstance(event, LaneStarted) and event.lane == after.id:
        started = _started(before, event, shared.node, now)
        gap = None if started is None else _gap(event, shared.node, now)
        return tuple(LogEvent(one) for one in (gap, started) if one is not None)
    found = _failed(before, after, shared.node, now)
    return () if found is None else (LogEvent(found),)


def _entry(kind: EventKind, fragment: FragmentId, node: NodeId, now_ms: Millis) -> LoggedEvent:
    """An entry of a node about a fragment that it runs."""
    return LoggedEvent(
        now_ms,
        kind,
        _node(node),
        network=fragment.network.name,
        fragment=fragment.fragment,
        node=node,
    )


def _started(before: Lane, event: LaneStarted, node: NodeId, now: Now) -> LoggedEvent | None:
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
    if _begins_after_gap(marker):
        how = "without state, at the newest records"
    entry = _entry(EventKind.STARTED, event.lane.fragment, node, now.wall_ms)
    return replace(entry, why=how, facts=facts, parts_ms=tuple(parts))


def _gap(event: LaneStarted, node: NodeId, now: Now) -> LoggedEvent | None:
    """The gap after which a lane has begun; None: there is none.

    It is logged again if the lane is started again before it has written a batch.
    """
    marker = event.marker
    gap = marker.gap
    if gap is None or not _begins_after_gap(marker):
        return None
    since = () if gap.since_ms is None else (("since", rfc3339(gap.since_ms)),)
    facts = (
        ("epoch", str(event.epoch)),
        ("incarnation", gap.incarnation),
        ("omitted", str(gap.offsets)),
        *since,
        ("newest", rfc3339(gap.newest_ms)),
        ("until", rfc3339(gap.until_ms)),
    )
    return replace(_entry(EventKind.GAP, event.lane.fragment, node, now.wall_ms), facts=facts)


def _begins_after_gap(marker: CommitMarker) -> bool:
    """Whether no batch was written since a gap."""
    gap = marker.gap
    return gap is not None and gap.incarnation == marker.incarnation and marker.judged is None


def _failed(before: Lane, after: Lane, node: NodeId, now: Now) -> LoggedEvent | None:
    """A failure of a run or of its planning, unless the lane has failed by the same error before.

    It counts as another one after it has run for long.
    """
    phase = after.phase
    has_failed = isinstance(phase, Failed | BackingOff | Fenced)
    if not has_failed or isinstance(before.phase, Fenced) or type(phase) is type(before.phase):
        return None
    facts = (("epoch", str(after.epoch)),) if after.epoch else ()
    kind = EventKind.FENCED if isinstance(phase, Fenced) else EventKind.FAILED
    entry = _entry(kind, after.id.fragment, node, now.wall_ms)
    entry = replace(entry, why=one_line(after.tries.last_error), facts=facts)
    if kind is EventKind.FENCED:
        return entry
    given_up, running = isinstance(phase, Failed), before.running
    ran_long = running is not None and now.steady_ms - running.since_ms >= SUCCESS_MS
    if after.tries.last_error == before.tries.last_error and not (given_up or ran_long):
        return None
    return replace(entry, facts=(*facts, ("given_up", "yes" if given_up else "no")))


def discarded(fragment: FragmentId, node: NodeId, problem: str, now_ms: Millis) -> LoggedEvent:
    """The follower of a secondary is not begun again for a while."""
    entry = _entry(EventKind.FOLLOWER_FAILED, fragment, node, now_ms)
    return replace(entry, why=one_line(problem), facts=(("discarded", "yes"),))


def claimed(
    fragment: FragmentId, node: NodeRecord, claim: Claim, now_ms: Millis
) -> LoggedEvent | None:
    """A claim that has changed the owner; None: the node in its present life has claimed again."""
    before, move = claim.before, claim.move
    if before is not None and before.is_of(node):
        return None
    parts = () if move is None else (("since_request", max(0, now_ms - move.asked_at_ms)),)
    origin = "" if before is None else before.node
    if before is None and move is not None and move.to == node.node:  # its source has released it
        why, origin = f"moved from node {move.source}", move.source
    elif before is None:
        why = NO_OWNER
    elif before.node == node.node:
        why = "the node was started again"
    else:
        why = why_taken(claim)
    facts = (("epoch", str(claim.epoch)), *((("from", origin),) if origin else ()))
    entry = _entry(EventKind.CLAIMED, fragment, node.node, now_ms)
    return replace(entry, why=why, facts=facts, parts_ms=parts)


def taken_over(
    fragment: FragmentId, node: NodeId, epoch: Epoch, taken: Takeover, now_ms: Millis
) -> LoggedEvent:
    """A takeover whose lane has written a batch, by parts."""
    how = () if taken.noticed is None else (("noticed_by", taken.noticed.by),)
    return replace(
        _entry(EventKind.TAKEN_OVER, fragment, node, now_ms),
        why=taken.why,
        facts=(("epoch", str(epoch)), ("from", taken.source), *how),
        parts_ms=taken.parts_ms,
    )


def released(
    fragment: FragmentId, owner: OwnerRecord, to: NodeId | None, now_ms: Millis
) -> LoggedEvent:
    """A release by the owner; `to`: the node that is to run it, if one has room for it."""
    entry = _entry(EventKind.RELEASED, fragment, owner.node, now_ms)
    why = "no node has room for it" if to is None else f"node {to} is to run it"
    facts = (("epoch", str(owner.epoch)), *((("to", to),) if to is not None else ()))
    return replace(entry, why=why, facts=facts)


def published(
    fragment: FragmentId, node: NodeId, epoch: Epoch, state: TentativeState, now: Now
) -> LoggedEvent:
    """A fork begins to publish tentative results."""
    facts, parts = [("epoch", str(epoch))], list[tuple[str, int]]()
    if state.generation:
        facts.append(("generation", state.generation))
    if state.held is not None:
        facts.append(("missing", ",".join(map(missing_text, state.missing))))
        parts.append(("held_back", max(0, state.since_ms - state.held.since_ms)))
    entry = _entry(EventKind.TENTATIVE_BEGUN, fragment, node, now.wall_at(state.since_ms))
    return replace(entry, facts=tuple(facts), parts_ms=tuple(parts))


def settled(
    fragment: FragmentId, node: NodeId, epoch: Epoch, run: TentativeRun, now: Now
) -> LoggedEvent:
    """All tentative results that were published are settled."""
    became, parts = run.became, list[tuple[str, int]]()
    if run.began_ms is not None and run.ended_ms is not None:
        parts.append(("publishing", run.ended_ms - run.began_ms))
        parts.append(("settling", max(0, now.steady_ms - run.ended_ms)))
    facts = (
        ("epoch", str(epoch)),
        ("published", str(became.published)),
        ("confirmed", str(became.confirmed)),
        ("replaced", str(became.replaced)),
        ("undone", str(became.undone)),
    )
    why = "" if parts else "they were left by an earlier run"
    entry = _entry(EventKind.TENTATIVE_SETTLED, fragment, node, now.wall_ms)
    return replace(entry, why=why, facts=facts, parts_ms=tuple(parts))


def tentative_failed(
    fragment: FragmentId, node: NodeId, epoch: Epoch, state: TentativeState, now: Now
) -> LoggedEvent:
    """A fork has failed."""
    entry = _entry(EventKind.TENTATIVE_FAILED, fragment, node, now.wall_at(state.since_ms))
    generation = (("generation", state.generation),) if state.generation else ()
    facts = (("epoch", str(epoch)), *generation)
    return replace(entry, why=one_line(state.problem), facts=facts)


def of_transfer(
    kind: EventKind, transfer: Transfer, by: NodeId, now_ms: Millis, why: str = ""
) -> LoggedEvent:
    """A step of a move, as seen by a node."""
    return replace(
        _entry(kind, transfer.id, transfer.to, now_ms),
        by=_node(by),
        why=one_line(why),
        facts=(("from", transfer.source), ("to", transfer.to)),
        parts_ms=(("since_request", max(0, now_ms - transfer.asked_at_ms)),),
    )


def of_node(kind: EventKind, record: NodeRecord, now_ms: Millis, why: str = "") -> LoggedEvent:
    """The start or the end of a node; `why`: the error that has ended it."""
    labels = ",".join(f"{name}={value}" for name, value in record.labels)
    known = (
        ("version", record.version),
        ("labels", labels),
        ("capacity", str(record.capacity or "")),
        ("most_fragments", str(record.most_fragments or "")),
        ("host", record.host),
    )
    facts = tuple((name, value) for name, value in known if value)
    return LoggedEvent(
        now_ms, kind, _node(record.node), node=record.node, why=one_line(why), facts=facts
    )


def entries_lost(number: int, node: NodeId, now_ms: Millis) -> LoggedEvent:
    """Entries that a node could not write."""
    facts = (("entries", str(number)),)
    return LoggedEvent(now_ms, EventKind.ENTRIES_LOST, _node(node), node=node, facts=facts)


def _node(name: NodeId) -> str:
    return f"node {name}"
