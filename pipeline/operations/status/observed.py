"""State and lag of a fragment, from its catalog record and the last report of its node. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.catalog.load_records import FragmentLoad
from pipeline.catalog.records import DesiredState, FragmentRecord, NodeRecord, TrimRecord
from pipeline.catalog.secondaries import may_run
from pipeline.deploy.expiring import reported_expiring
from pipeline.heartbeats.steps import StepAge
from pipeline.ids import FragmentId, Millis, TopicName
from pipeline.lanes.expiring import ExpiringRecords
from pipeline.names import FragmentNames
from pipeline.operations.status.standbys import ObservedStandby
from pipeline.operations.status.takeover import TakeoverNow

LOST = "lost"
"""The node that ran it is down, and no other has taken it over."""
QUEUED = "queued"
"""It should run, and no node that may run it has room for it."""
STOPPING = "stopping"
UNREAD_LEAST_MS = 10_000
"""How long records may be unread in a fragment that is not behind: for a batch and a pause."""


@dataclass(frozen=True, slots=True)
class Lag:
    """Lag of a fragment behind the ends of its inputs.

    Args:
        records: number of records; None: unknown.
        age_ms: the age of the oldest record that is not processed, 0 for none; None: unknown.
        by_topic: records per input topic.
    """

    records: int | None = None
    age_ms: int | None = None
    by_topic: Mapping[TopicName, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObservedFragment:
    """A fragment with its desired state and the last report of a node.

    Args:
        record: the desired state in the catalog.
        status: the last report; None: no node has reported.
        node_up: whether the reporting process is still up.
        waits_for: if it runs itself, names of the nearest fragments above it that do not run, are
            behind, or whose event time is held back; if there are none, of those whose short delays
            add up to a long one.
        expiring: records that it needs and that retention removes soon, or has removed; None: not
            examined.
        has_no_node: why no node that is up may claim it; empty: one may.
        standbys: its secondaries, the first one first.
        overdue: the present step of its lane, if that takes too long.
        trim: what was removed of its output, if that is kept by need.
        is_queued: whether no node has room for it; it may run still, to the end of its batch.
        takeover: what a takeover would cost now; None: it has no secondaries, or it was not asked.
        load: as its node has last metered it; None: it has not.
    """

    record: FragmentRecord
    status: FragmentStatus | None
    node_up: bool
    waits_for: tuple[str, ...] = ()
    expiring: tuple[ExpiringRecords, ...] | None = None
    has_no_node: str = ""
    standbys: tuple[ObservedStandby, ...] = ()
    overdue: StepAge | None = None
    trim: TrimRecord | None = None
    is_queued: bool = False
    takeover: TakeoverNow | None = None
    load: FragmentLoad | None = None

    @property
    def unplaced(self) -> str:
        """Why no node that is up claims it; empty: one may, or it runs."""
        unclaimed = self.state in {LaneState.PENDING.value, LOST, QUEUED}
        return self.has_no_node if self.record.is_wanted and unclaimed else ""

    @property
    def state(self) -> str:
        """A value of `LaneState` or `DesiredState`, or LOST, QUEUED or STOPPING."""
        reported = self.status.state if self.status else LaneState.PENDING
        if self.record.desired is not DesiredState.RUNNING:
            at_rest = reported in {LaneState.STOPPED, LaneState.PENDING} or not self.node_up
            return self.record.desired.value if at_rest else STOPPING
        is_lost = self.status is not None and not self.node_up
        if self.is_queued and (is_lost or reported is LaneState.PENDING):
            return QUEUED
        if is_lost:
            return LOST
        return reported.value

    @property
    def lag(self) -> Lag:
        """Lag by the report of a node that is up; unknown if no lane runs."""
        status = self.status
        if status is None or not self.node_up:
            return Lag()
        return Lag(status.lag_records, status.lag_ms, dict(status.inputs))

    @property
    def behind_ms(self) -> int | None:
        """Upper bound of the delay of results, in ms.

        By unread records, by another input, or by event time that advances in steps.
        """
        status, age_ms = self.status, self.lag.age_ms
        if status is None or age_ms is None:
            return age_ms
        return max(age_ms, status.held_ms or 0, status.steps_ms or 0)

    @property
    def is_held(self) -> bool:
        """Whether an input holds event time back; False if unknown."""
        return self.status is not None and bool(self.status.held_by) and self.lag.age_ms is not None

    @property
    def stalled_since_ms(self) -> Millis | None:
        """Since when it runs, has unread records, and has ended no batch; None: it is not so."""
        running = self.state == LaneState.RUNNING.value
        return self.status.stalled_since_ms if self.status is not None and running else None

    @property
    def unread_ms(self) -> int | None:
        """How long the oldest unread record may have waited; None: not long, or unknown."""
        age_ms, pace_ms = self.lag.age_ms, self.status.pace_ms if self.status else 0
        return age_ms if age_ms is not None and age_ms >= UNREAD_LEAST_MS + pace_ms else None

    @property
    def rebuilding_since_ms(self) -> Millis | None:
        """Start of the rebuild of its state; None: it is not rebuilding."""
        rebuilding = self.state == LaneState.REBUILDING.value
        return self.status.rebuild_since_ms if self.status is not None and rebuilding else None

    @property
    def id(self) -> FragmentId:
        """The fragment's identity."""
        return FragmentId(self.record.network, self.record.fragment)

    @property
    def name(self) -> str:
        """Its name across networks: `network.fragment`."""
        return f"{self.record.network}.{self.record.fragment}"


@dataclass(frozen=True, slots=True)
class Around:
    """What else the catalog says about fragments.

    Args:
        standbys: the secondaries of each fragment.
        trims: of the outputs that are kept by need.
        queued: the fragments that no node has room for.
    """

    standbys: Mapping[FragmentId, tuple[ObservedStandby, ...]] = field(default_factory=dict)
    trims: Sequence[TrimRecord] = ()
    queued: Collection[FragmentId] = frozenset()


def observe(
    records: Sequence[FragmentRecord],
    statuses: Sequence[FragmentStatus],
    nodes: Sequence[NodeRecord],
    around: Around = Around(),
) -> tuple[ObservedFragment, ...]:
    """Combine records and reports, in the order of the records.

    A report of an earlier process of a node counts as one of a node that is down.

    Args:
        records: of the fragments.
        statuses: the last reports.
        nodes: those that are up.
        around: the rest.
    """
    trimmed = {trim.id: trim for trim in around.trims}
    reported = {(status.network, status.fragment): status for status in statuses}
    live = {node.node: node for node in nodes}
    seen = tuple(
        ObservedFragment(
            record,
            status,
            status is not None and status.node in live and status.is_of(live[status.node]),
            expiring=reported_expiring(status, nodes),
            has_no_node=_has_no_node(record, nodes, is_queued=is_queued),
            standbys=around.standbys.get(name, ()),
            trim=trimmed.get(name),
            is_queued=is_queued,
        )
        for record in records
        for name in (FragmentId(record.network, record.fragment),)
        for is_queued in (name in around.queued,)
        for status in (reported.get((record.network, record.fragment)),)
    )
    by_writer = {FragmentNames(one.id).writer: one for one in seen}
    return tuple(replace(one, waits_for=_waits_for(one, by_writer)) for one in seen)


def _has_no_node(record: FragmentRecord, nodes: Sequence[NodeRecord], *, is_queued: bool) -> str:
    """Why no node that is up claims a fragment; empty: one may."""
    up = [node for node in nodes if node.participant == record.network.participant]
    if not up:
        return "no node is up"
    if not any(may_run(record, node) for node in up):
        return f"no node that is up has {record.nodes}"
    return f"no node has room (priority {record.priority.value})" if is_queued else ""


def _waits_for(
    fragment: ObservedFragment, by_writer: Mapping[str, ObservedFragment]
) -> tuple[str, ...]:
    """Names of the nearest fragments above a running one whose results do not come, or come late.

    Each fragment of a chain may be behind by less than `UNREAD_LEAST_MS`, and their sum by more.
    """
    found: set[str] = set()
    delayed: set[str] = set()
    delay_ms = 0
    passed: set[str] = set()
    level = [fragment]
    while level:
        delay_ms += max(_delay_ms(one) for one in level)
        above = {
            writer
            for one in level
            if one.status is not None and _goes_on(one)
            for writer in one.status.writers
        }
        level = [by_writer[writer] for writer in above - passed if writer in by_writer]
        passed |= above
        found |= {one.name for one in level if not _goes_on(one)}
        delayed |= {one.name for one in level if _delay_ms(one) > 0}
    return tuple(sorted(found or (delayed if delay_ms >= UNREAD_LEAST_MS else ())))


def _delay_ms(one: ObservedFragment) -> int:
    """How long its oldest record is unread, but for its pace; 0 if unknown."""
    pace_ms = one.status.pace_ms if one.status else 0
    return max(0, (one.lag.age_ms or 0) - pace_ms)


def _goes_on(one: ObservedFragment) -> bool:
    """Whether it runs, is not behind, and waits for no input, or for the clock.

    An input that is behind as a whole, with records, may be so at all times: by its lateness.
    """
    status = one.status
    if status is None or one.state != LaneState.RUNNING.value or one.stalled_since_ms is not None:
        return False
    if one.unread_ms is not None or status.steps_ms is not None:
        return False
    if status.settles_at_ms is not None or (one.is_held and status.held_ms == 0):
        return False
    if not one.is_held:
        return True
    silent = status.held_silent_since_ms is not None
    return status.held_ms is not None and status.held_partition is None and not silent


def settled(seen: Sequence[ObservedFragment]) -> bool:
    """Whether every fragment that should run does, or is queued and does not."""
    running = LaneState.RUNNING.value
    return all(
        one.state == QUEUED or (one.state == running and not one.is_queued)
        for one in seen
        if one.record.is_wanted
    )


def failed(seen: Sequence[ObservedFragment]) -> tuple[ObservedFragment, ...]:
    """The fragments that have failed and are not restarted."""
    return tuple(one for one in seen if one.state == LaneState.FAILED.value)
