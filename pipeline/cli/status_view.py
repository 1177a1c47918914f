"""Status of fragments as `medusa status` and `medusa deploy` print it: tables and data. Pure."""

from collections.abc import Iterator, Sequence

from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.catalog.records import TrimRecord
from pipeline.cli.load_view import load_data, load_text
from pipeline.cli.table import Table
from pipeline.cli.takeover_view import takeover_data, takeover_text
from pipeline.cli.tentative_view import (
    tentative_data,
    tentative_problem,
    tentative_text,
    waits_data,
)
from pipeline.cli.times import span, time_text
from pipeline.clock import rfc3339
from pipeline.counting import counted
from pipeline.ids import Millis
from pipeline.lanes.expiring_text import advice, message
from pipeline.lanes.follower_phases import LEVEL, FollowerPhase
from pipeline.operations.status.observed import LOST, QUEUED, ObservedFragment
from pipeline.operations.status.standbys import ObservedStandby
from schemas.json_value import Json, JsonObject

_COLUMNS = (
    "fragment", "state", "node", "in", "out", "lag", "behind", "late", "dead", "restarts", "error",
)  # fmt: skip
_STANDBYS, _TAKEOVER, _WAITS, _TENTATIVE = "standbys", "takeover", "waits", "tentative"
_LOAD = "load"
_NUMBERS = frozenset({"in", "out", "lag", "behind", "late", "dead", "restarts", _LOAD})
_SPARE = (
    "restarts",
    _LOAD,
    "late",
    _WAITS,
    "dead",
    _TAKEOVER,
    "node",
    "behind",
    "out",
    "in",
    _TENTATIVE,
)
_PLACE_WIDTH = 40
"""A longer place would leave no room for the message."""
_PARTITIONS_SHOWN = 4
_UNKNOWN = "-"
_STATES_WITH_REASON = frozenset({LaneState.WAITING.value, LaneState.RESTARTING.value, QUEUED})


def news(one: ObservedFragment) -> str:
    """The state of a fragment, with the reason if it waits or is started again."""
    error = _error(one)
    return f"{one.state}: {error}" if error and one.state in _STATES_WITH_REASON else one.state


def as_table(seen: Sequence[ObservedFragment], now_ms: Millis) -> Table:
    """Table of fragments; with secondaries and tentative results, if any may have some."""
    columns: tuple[str, ...] = _COLUMNS
    rows = tuple(_row(one, now_ms) for one in seen)
    if any(one.record.reliability.secondaries for one in seen):
        columns = (*columns[:-1], _STANDBYS, _TAKEOVER, columns[-1])
        pairs = zip(rows, seen, strict=True)
        rows = tuple(
            (*row[:-1], _standbys(one, now_ms), _takeover(one, now_ms), row[-1])
            for row, one in pairs
        )
    if any(one.load is not None for one in seen):
        columns = (*columns[:-1], _LOAD, columns[-1])
        rows = tuple(
            (*row[:-1], load_text(one.load), row[-1]) for row, one in zip(rows, seen, strict=True)
        )
    if any(_may_be_tentative(one) for one in seen):
        columns = (*columns[:-1], _WAITS, _TENTATIVE, columns[-1])
        rows = tuple(
            (*row[:-1], _waits(one), _tentative(one), row[-1])
            for row, one in zip(rows, seen, strict=True)
        )
    return Table(
        columns,
        rows,
        "no network is deployed",
        _NUMBERS,
        spare=tuple(name for name in _SPARE if name in columns),
        below="error",
        styles={("state", LaneState.FAILED.value): "bold red"},
    )


def as_data(one: ObservedFragment, now_ms: Millis) -> JsonObject:
    """Data of a fragment; times are RFC 3339, durations milliseconds."""
    status = one.status
    data: JsonObject = {
        "network": one.record.network.name,
        "fragment": one.record.fragment,
        "version": one.record.version,
        "desired": one.record.desired.value,
        "state": one.state,
        "node": status.node if status and one.state != QUEUED else None,
        "priority": one.record.priority.value,
        "expiring": _expiring_data(one, now_ms),
        "overdue_step": _step_data(one),
        "unplaced": one.unplaced,
        "trim": _trim_data(one.trim),
        "standbys_wanted": one.record.reliability.secondaries,
        "standbys": [
            {
                "node": standby.node,
                "phase": standby.phase.value,
                "level": standby.phase in LEVEL,
                "problem": standby.problem,
                "since": time_text(standby.since_ms),
                "reached": time_text(standby.reached_ms),
                "state_bytes": standby.state_bytes or None,
                "rehearsed": standby.is_rehearsed,
            }
            for standby in one.standbys
        ],
        "takeover": takeover_data(one.takeover),
        "load": load_data(one.load),
    }
    if status is None:
        return data
    boundary, lag = status.boundary_ms, one.lag
    return {
        **data,
        "epoch": status.epoch,
        "reported_at": rfc3339(status.reported_at_ms),
        "records_in": status.records_in,
        "records_out": status.records_out,
        "lag_records": lag.records,
        "lag_ms": lag.age_ms,
        "held": _event_time_wait_data(one),
        "steps_ms": status.steps_ms,
        "stalled_since": time_text(one.stalled_since_ms),
        "unreachable": status.unreachable,
        "settles_at": time_text(status.settles_at_ms),
        "waits_for": list(one.waits_for),
        "late": _late_data(status),
        "lag_by_topic": {str(topic): records for topic, records in lag.by_topic.items()},
        "boundary": time_text(boundary),
        "event_time": time_text(status.event_ms),
        "dead_letters": status.dead_letters,
        "late_dropped": status.late_dropped,
        "skipped": status.skipped,
        "restarts": status.restarts,
        "batch_ms": status.batch_ms,
        "last_error": status.last_error,
        "rebuild": _rebuild_data(one),
        "gap": _gap_data(status),
        "waits": waits_data(status.waits) if one.node_up else None,
        "tentative": tentative_data(status) if one.node_up else None,
    }


def _trim_data(trim: TrimRecord | None) -> JsonObject | None:
    """What is removed of its output since no fragment needs it."""
    if trim is None:
        return None
    return {
        "topic": trim.topic,
        "removed_before": {str(partition): offset for partition, offset in trim.before},
        "held": trim.held,
        "since": rfc3339(trim.at_ms),
    }


def trim_notes(seen: Sequence[ObservedFragment]) -> Iterator[str]:
    """A sentence about each output that is kept by need."""
    for trim in (one.trim for one in seen if one.trim is not None):
        shown = ", ".join(f"{p}: {offset:,}" for p, offset in trim.before[:_PARTITIONS_SHOWN])
        more = ", …" if len(trim.before) > _PARTITIONS_SHOWN else ""
        removed = f"removed below offsets {shown}{more}" if shown else "nothing was removed yet"
        held = f"; no more is removed now: {trim.held}" if trim.held else ""
        yield f"topic {trim.topic} is kept by need: {removed}{held}"


def _expiring_data(one: ObservedFragment, now_ms: Millis) -> list[Json] | None:
    """Records that it needs and that retention removes; None: not examined."""
    if one.expiring is None:
        return None
    return [
        {
            "topic": found.topic,
            "partitions": list(found.partitions),
            "use": found.use.value,
            "cause": found.cause.value,
            "retention_ms": found.kept_ms,
            "oldest": time_text(found.oldest_ms),
            "removed_from": time_text(found.removed_from_ms),
            "message": message(found, now_ms),
            "hint": advice(found, one.name, one.state),
        }
        for found in one.expiring
    ]


def _step_data(one: ObservedFragment) -> JsonObject | None:
    """The step of its lane, if that takes too long."""
    step = one.overdue
    return None if step is None else {"doing": step.doing, "ms": step.age_ms}


def _event_time_wait_data(one: ObservedFragment) -> JsonObject | None:
    """The input that event time waits for; None if there is none, or it is not measured."""
    status = one.status
    if status is None or not one.is_held:
        return None
    since_ms, silent_since_ms = status.held_since_ms, status.held_silent_since_ms
    return {
        "by": status.held_by,
        "partition": status.held_partition,
        "ms": status.held_ms,
        "since": time_text(since_ms),
        "silent_since": time_text(silent_since_ms),
    }


def _late_data(status: FragmentStatus) -> JsonObject | None:
    """How many of the latest records were late; None: few."""
    if status.late_since_ms is None:
        return None
    return {
        "since": rfc3339(status.late_since_ms),
        "ms": status.late_span_ms,
        "records": status.late_records,
        "records_read": status.late_read,
    }


def _rebuild_data(one: ObservedFragment) -> JsonObject | None:
    """Progress of a rebuild of the state; None if none is running."""
    status, since_ms = one.status, one.rebuilding_since_ms
    if status is None or since_ms is None:
        return None
    return {
        "since": rfc3339(since_ms),
        "offsets": status.rebuild_offsets,
        "records_read": status.rebuild_read,
        "batches": status.rebuild_batches,
        "batches_done": status.rebuild_batches_done,
    }


def _gap_data(status: FragmentStatus) -> JsonObject | None:
    """What is left out since its state was lost; None: nothing."""
    if status.gap_until_ms is None:
        return None
    return {"until": rfc3339(status.gap_until_ms), "offsets": status.gap_omitted}


def _gap_text(status: FragmentStatus) -> str:
    until_ms = status.gap_until_ms
    if until_ms is None:
        return ""
    omitted = f"{status.gap_omitted:,} offsets were not read"
    return f"gap: its state was lost, {omitted}; results are complete above {rfc3339(until_ms)}"


def _error(one: ObservedFragment) -> str:
    """The error column: the last error on one line, or why a fragment without an error waits.

    A place longer than `_PLACE_WIDTH`, often a path, is omitted so that the message is visible. Of
    a running fragment the column contains what its results wait for; only programs get an error
    that is over.
    """
    status = one.status
    if status is None:
        return one.unplaced
    if one.state == LaneState.RUNNING.value:
        return _wait(one, status)
    last_error, since_ms = status.last_error, status.rebuild_since_ms
    if one.state == LaneState.REBUILDING.value and since_ms is not None:
        read, all_of_it = f"{status.rebuild_read:,}", f"{status.rebuild_offsets:,}"
        done, batches = status.rebuild_batches_done, status.rebuild_batches
        parts = f", {done:,} of {batches:,} batches," if batches > 1 else ""
        return f"read {read} of {all_of_it}{parts} in {span(status.reported_at_ms - since_ms)}"
    line = " ".join(last_error.split())
    place, colon, message = line.partition(": ")
    line = message if colon and len(place) > _PLACE_WIDTH else line
    return "; ".join(filter(None, (one.unplaced, line)))


def _wait(one: ObservedFragment, status: FragmentStatus) -> str:
    """What the results of a running fragment wait for: itself, before what its inputs wait for."""
    if one.stalled_since_ms is not None:
        waited = span(status.reported_at_ms - one.stalled_since_ms)
        unread = ", with records unread" if one.lag.records else ""
        return f"no batch has ended for {waited}{unread}"
    if one.waits_for:
        return f"waits for {', '.join(one.waits_for)}"
    waits = (
        _gap_text(status),
        tentative_problem(status),
        _unreachable(status),
        _unread(one),
        _late(status),
        _event_time_wait(status),
        _by_clock(status),
    )
    return "; ".join(wait for wait in waits if wait)


def _unreachable(status: FragmentStatus) -> str:
    if not status.unreachable:
        return ""
    return f"cannot be reached: {status.unreachable}; the other partitions are read on"


def _unread(one: ObservedFragment) -> str:
    if one.unread_ms is None or one.lag.records is None:
        return ""
    return f"{counted(one.lag.records, 'record')} unread for up to {span(one.unread_ms)}"


def _late(status: FragmentStatus) -> str:
    if status.late_since_ms is None:
        return ""
    found = f"{status.late_records} of {status.late_read} records read in "
    found += f"{span(status.late_span_ms)} were late"
    ahead_ms = status.ahead_ms
    return f"{found}: event time is {span(ahead_ms)} beyond the clock" if ahead_ms else found


def _event_time_wait(status: FragmentStatus) -> str:
    if status.steps_ms is not None and (not status.held_by or status.held_ms == 0):
        return f"event time catches up in steps, {span(status.steps_ms)} to go"
    if not status.held_by:
        return ""
    by, since_ms = status.holder, status.held_since_ms
    silent = ""
    if status.held_silent_since_ms is not None:
        silent = f", silent for {_since(status, status.held_silent_since_ms)}"
    if status.held_ms is None:
        since = "" if since_ms is None or silent else f" for {_since(status, since_ms)}"
        return f"event time waits for {by}: it has given none{since}{silent}"
    if status.held_ms > 0:
        return f"event time is held back by {by}, {span(status.held_ms)} behind{silent}"
    if silent or since_ms is None:
        return f"event time waits for {by}{silent}"
    still = _since(status, since_ms)
    return f"event time waits for {by}: its records have brought none for {still}"


def _by_clock(status: FragmentStatus) -> str:
    if status.settles_at_ms is None:
        return ""
    rest_ms = max(0, status.settles_at_ms - status.reported_at_ms)
    return (
        f"inputs are silent: event time moves by the clock, all results are due in {span(rest_ms)}"
    )


def _since(status: FragmentStatus, since_ms: Millis) -> str:
    return span(status.reported_at_ms - since_ms)


def _standbys(one: ObservedFragment, now_ms: Millis) -> str:
    """The secondaries of a fragment, each with how far it is and for how long; or how many lack."""
    found = [_standby(standby, now_ms) for standby in one.standbys]
    if one.record.is_wanted and (missing := one.record.reliability.secondaries - len(found)) > 0:
        found.append(f"{missing} missing")
    return ", ".join(found) or _UNKNOWN


def _takeover(one: ObservedFragment, now_ms: Millis) -> str:
    return _UNKNOWN if one.takeover is None else takeover_text(one.takeover, now_ms)


def _may_be_tentative(one: ObservedFragment) -> bool:
    """By its record; one that an earlier version has deployed says it when it runs."""
    runs = one.status is not None and one.status.tentative is not None
    return one.record.may_be_tentative or runs


def _waits(one: ObservedFragment) -> str:
    waits = one.status.waits if one.status is not None and one.node_up else None
    return _UNKNOWN if waits is None else span(waits.usual_ms)


def _tentative(one: ObservedFragment) -> str:
    return _UNKNOWN if one.status is None or not one.node_up else tentative_text(one.status)


def _standby(standby: ObservedStandby, now_ms: Millis) -> str:
    if standby.phase in LEVEL:
        ready = standby.phase is FollowerPhase.WAITING and standby.is_rehearsed
        return f"{standby.node} {'rehearsed' if ready else 'level'}"
    since = "" if standby.since_ms is None else f" for {span(max(0, now_ms - standby.since_ms))}"
    behind = ""
    if standby.reached_ms is not None:
        behind = f", {span(max(0, now_ms - standby.reached_ms))} behind"
    problem = f": {' '.join(standby.problem.split())}" if standby.problem else ""
    return f"{standby.node} {standby.phase.value}{since}{behind}{problem}"


def _warnings(one: ObservedFragment, now_ms: Millis) -> list[str]:
    return [
        f"warning: {message(found, now_ms)}; {advice(found, one.name, one.state)}"
        for found in one.expiring or ()
    ]


def _row(one: ObservedFragment, now_ms: Millis) -> tuple[str, ...]:
    status, warnings = one.status, _warnings(one, now_ms)
    if status is None:
        unknown = (_UNKNOWN for _ in _COLUMNS[3:-1])
        found = (_error(one), *warnings)
        return (one.name, one.state, _UNKNOWN, *unknown, "; ".join(filter(None, found)))
    lag, error = one.lag, _error(one)
    if one.state == LOST:
        seen = f"last seen {rfc3339(status.reported_at_ms)}"
        error = f"{seen}; {error}" if error else seen
    return (
        one.name,
        one.state,
        _UNKNOWN if one.state == QUEUED else status.node,
        str(status.records_in),
        str(status.records_out),
        _UNKNOWN if lag.records is None else str(lag.records),
        _UNKNOWN if one.behind_ms is None else span(one.behind_ms),
        str(status.late_dropped),
        str(status.dead_letters),
        str(status.restarts),
        "; ".join(
            text for text in (one.overdue.words if one.overdue else "", error, *warnings) if text
        ),
    )
