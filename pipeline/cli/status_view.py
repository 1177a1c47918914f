"""The state of fragments as people and programs see it: desired and observed put together. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.catalog.records import (
    DesiredState,
    FragmentRecord,
    FragmentStatus,
    LaneState,
    NodeRecord,
)
from pipeline.cli.table import Table
from pipeline.cli.times import span
from pipeline.clock import rfc3339
from pipeline.ids import TopicName

LOST = "lost"
"""The node that ran it is gone, and no other has taken it up."""
STOPPING = "stopping"
_COLUMNS = (
    "fragment", "state", "node", "in", "out", "lag", "behind", "late", "dead", "restarts", "error",
)  # fmt: skip
_NUMBERS = frozenset({"in", "out", "lag", "behind", "late", "dead", "restarts"})
_PLACE_WIDTH = 40
"""A longer place would leave no room for what happened there."""
_UNKNOWN = "-"
_TOLD_WHY = frozenset({LaneState.WAITING.value, LaneState.RESTARTING.value})


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a fragment is behind: in records, in ms, in records per topic; None: unknown."""

    records: int | None = None
    age_ms: int | None = None
    by_topic: Mapping[TopicName, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Seen:
    """One fragment: what is wanted, what was last reported, and whether the reporter lives."""

    record: FragmentRecord
    status: FragmentStatus | None
    node_up: bool

    @property
    def news(self) -> str:
        """The word for its state; why, if it waits or is started again."""
        error = _error(self.state, self.status) if self.status else ""
        return f"{self.state}: {error}" if error and self.state in _TOLD_WHY else self.state

    @property
    def state(self) -> str:
        """The word for its state."""
        reported = self.status.state if self.status else LaneState.PENDING
        if self.record.desired is not DesiredState.RUNNING:
            at_rest = reported in {LaneState.STOPPED, LaneState.PENDING} or not self.node_up
            return self.record.desired.value if at_rest else STOPPING
        if self.status is not None and not self.node_up:
            return LOST
        return reported.value

    @property
    def lag(self) -> "Lag":
        """How far it is behind: only a lane that runs is measured, by a node that is up."""
        status = self.status
        if status is None or not self.node_up:
            return Lag()
        return Lag(status.lag_records, status.lag_ms, dict(status.inputs))

    @property
    def behind_ms(self) -> int | None:
        """For how long results can have waited: for their records, or for another input."""
        status, age_ms = self.status, self.lag.age_ms
        held_ms = status.held_ms if status is not None and age_ms is not None else None
        return age_ms if held_ms is None or age_ms is None else max(age_ms, held_ms)

    @property
    def name(self) -> str:
        """Its name across networks."""
        return f"{self.record.network}.{self.record.fragment}"


def see(
    records: Sequence[FragmentRecord],
    statuses: Sequence[FragmentStatus],
    nodes: Sequence[NodeRecord],
) -> tuple[Seen, ...]:
    """Put records and reports together, in the order of the records.

    A report of an earlier life of a node says nothing about this one.
    """
    reported = {(status.network, status.fragment): status for status in statuses}
    lives = {node.node: node for node in nodes}
    return tuple(
        Seen(
            record,
            status,
            status is not None and status.node in lives and status.is_of(lives[status.node]),
        )
        for record in records
        for status in (reported.get((record.network, record.fragment)),)
    )


def settled(seen: Sequence[Seen]) -> bool:
    """Whether everything that should run does."""
    return all(
        one.state == LaneState.RUNNING.value
        for one in seen
        if one.record.desired is DesiredState.RUNNING
    )


def failed(seen: Sequence[Seen]) -> tuple[Seen, ...]:
    """The fragments that will not run without help."""
    return tuple(one for one in seen if one.state == LaneState.FAILED.value)


def as_table(seen: Sequence[Seen]) -> Table:
    """For people."""
    return Table(
        _COLUMNS,
        tuple(_row(one) for one in seen),
        "no network is deployed",
        _NUMBERS,
        spare=("restarts", "late", "dead", "node", "behind", "out", "in"),
        below="error",
        styles={("state", LaneState.FAILED.value): "bold red"},
    )


def as_data(one: Seen) -> dict[str, Any]:
    """For programs; times are RFC 3339, lengths of time milliseconds."""
    status = one.status
    data: dict[str, Any] = {
        "network": one.record.network,
        "fragment": one.record.fragment,
        "version": one.record.version,
        "desired": one.record.desired.value,
        "state": one.state,
        "node": status.node if status else None,
    }
    if status is None:
        return data
    boundary, lag = status.boundary_ms, one.lag
    return data | {
        "epoch": status.epoch,
        "reported_at": rfc3339(status.reported_at_ms),
        "records_in": status.records_in,
        "records_out": status.records_out,
        "lag_records": lag.records,
        "lag_ms": lag.age_ms,
        "held": _held_data(one),
        "steps_ms": status.steps_ms,
        "lag_by_topic": dict(lag.by_topic),
        "boundary": rfc3339(boundary) if boundary is not None else None,
        "dead_letters": status.dead_letters,
        "late_dropped": status.late_dropped,
        "skipped": status.skipped,
        "restarts": status.restarts,
        "batch_ms": status.batch_ms,
        "last_error": status.last_error,
        "rebuild": _rebuild_data(one),
    }


def _held_data(one: Seen) -> dict[str, Any] | None:
    """The input that holds event time back; None when none does, or nobody measures it."""
    status = one.status
    if status is None or not status.held_by or one.lag.age_ms is None:
        return None
    since_ms, silent_since_ms = status.held_since_ms, status.held_silent_since_ms
    return {
        "by": status.held_by,
        "ms": status.held_ms,
        "since": rfc3339(since_ms) if since_ms is not None else None,
        "silent_since": rfc3339(silent_since_ms) if silent_since_ms is not None else None,
    }


def _rebuild_data(one: Seen) -> dict[str, Any] | None:
    """How far a rebuild of the state is; None when none is under way."""
    status = one.status
    if status is None or status.rebuild_since_ms is None or one.state != LaneState.REBUILDING.value:
        return None
    return {
        "since": rfc3339(status.rebuild_since_ms),
        "offsets": status.rebuild_offsets,
        "records_read": status.rebuild_read,
    }


def _error(state: str, status: FragmentStatus) -> str:
    """The last error on one line, or what a rebuild does; one that is over is left to programs.

    What happened comes first: the place in front of it is often a long path. Of a fragment that
    runs it says which input holds event time back, or that it catches up.
    """
    if state == LaneState.RUNNING.value:
        return _held_back(status)
    last_error, since_ms = status.last_error, status.rebuild_since_ms
    if state == LaneState.REBUILDING.value and since_ms is not None:
        read, all_of_it = f"{status.rebuild_read:,}", f"{status.rebuild_offsets:,}"
        return f"read {read} of {all_of_it} in {span(status.reported_at_ms - since_ms)}"
    line = " ".join(last_error.split())
    place, colon, message = line.partition(": ")
    return message if colon and len(place) > _PLACE_WIDTH else line


def _held_back(status: FragmentStatus) -> str:
    if not status.held_by:
        if status.steps_ms is None:
            return ""
        return f"event time catches up in steps, {span(status.steps_ms)} to go"
    if status.held_ms is None:
        return f"event time waits for {status.held_by}: it has given none"
    silent = ""
    if status.held_silent_since_ms is not None:
        silent = f", silent for {span(status.reported_at_ms - status.held_silent_since_ms)}"
    if status.held_ms == 0:
        return f"event time waits for {status.held_by}{silent}"
    return f"event time is held back by {status.held_by}, {span(status.held_ms)} behind{silent}"


def _row(one: Seen) -> tuple[str, ...]:
    status = one.status
    if status is None:
        return (one.name, one.state, _UNKNOWN, *(_UNKNOWN for _ in _COLUMNS[3:-1]), "")
    lag, error = one.lag, _error(one.state, status)
    if one.state == LOST:
        seen = f"last seen {rfc3339(status.reported_at_ms)}"
        error = f"{seen}; {error}" if error else seen
    return (
        one.name,
        one.state,
        status.node,
        str(status.records_in),
        str(status.records_out),
        _UNKNOWN if lag.records is None else str(lag.records),
        _UNKNOWN if one.behind_ms is None else span(one.behind_ms),
        str(status.late_dropped),
        str(status.dead_letters),
        str(status.restarts),
        error,
    )
