"""What takeovers would cost now: from the status of fragments, and from the event log in Kafka."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from brokers.kafka_interface import NoSuchTopicError
from brokers.log_reader import LogReader
from pipeline.clock import Clock
from pipeline.errors import MedusaError, NewerFormatError
from pipeline.event_log.codec import NoEntryError, decode
from pipeline.event_log.event import LoggedEvent
from pipeline.event_log.timings import Timings, newest_timings
from pipeline.ids import FragmentName, NetworkId
from pipeline.names import events_topic
from pipeline.operations.connections import Connections
from pipeline.operations.status.fragments import fragments_status
from pipeline.operations.status.observed import ObservedFragment
from pipeline.operations.status.takeover import Measured, takeover_now

EVERY_S = 10.0
WITHIN_S = 2.0
NEWEST = 2_000
"""So many entries of the event log are read: those of hours, or of days."""


@dataclass
class TakeoverSearch:
    """Adds to fragments what a takeover would cost now.

    Args:
        connections: to Kafka, which is only asked if a fragment has secondaries, and once in
            `EVERY_S`.
        clock: of that interval.
    """

    connections: Connections
    clock: Clock
    problem: MedusaError | None = None
    """Why the event log is not known; None: it is."""
    _read_s: float | None = field(default=None, init=False)
    _log: LogReader | None = field(default=None, init=False)
    _timings: Mapping[tuple[str, str], Timings] = field(default_factory=dict, init=False)

    def of(self, seen: Sequence[ObservedFragment]) -> tuple[ObservedFragment, ...]:
        """The fragments; those with secondaries have what a takeover would cost now."""
        if not any(_stood_by(one) for one in seen):
            return tuple(seen)
        now_s = self.clock.monotonic_s()
        if self._read_s is None or now_s - self._read_s >= EVERY_S:
            self._read_s = now_s
            self._read()
        return tuple(self._with_takeover(one) if _stood_by(one) else one for one in seen)

    def _with_takeover(self, one: ObservedFragment) -> ObservedFragment:
        timings = self._timings.get((one.id.network.name, one.id.fragment), Timings())
        found = takeover_now(one.record.reliability, one.standbys, timings)
        return replace(one, takeover=found)

    def _read(self) -> None:
        try:
            if self._log is None:
                _, self._log = self.connections.lookups(WITHIN_S)
            self._timings = newest_timings(_entries(self._log, self.connections))
        except MedusaError as error:
            self.problem = error
        else:
            self.problem = None


def _stood_by(one: ObservedFragment) -> bool:
    return one.record.is_wanted and one.record.reliability.secondaries > 0


def _entries(log: LogReader, connections: Connections) -> tuple[LoggedEvent, ...]:
    """The newest entries of the event log, in their order; none if nothing was logged yet."""
    try:
        records = log.newest(events_topic(connections.participant), NEWEST)
    except NoSuchTopicError:
        return ()
    found = list[LoggedEvent]()
    for record in records:
        try:
            found.append(decode(record.value, f"topic {record.topic}, offset {record.offset}"))
        except (NoEntryError, NewerFormatError):
            continue
    return tuple(found)


def measured_of(
    network: NetworkId, stateful: Mapping[FragmentName, bool], connections: Connections
) -> Mapping[FragmentName, Measured]:
    """What was measured of the fragments of a deployed network, also of those without secondaries.

    Args:
        network: the network.
        stateful: whether each fragment has a state, by its plan.
        connections: to Kafka and ZooKeeper.

    Raises:
        RefusedError: the network is not deployed.
        MedusaError: Kafka or ZooKeeper does not answer.
    """
    seen = fragments_status(network, connections)
    _, log = connections.lookups(WITHIN_S)
    timings = newest_timings(_entries(log, connections))
    return {
        one.id.fragment: Measured(
            one.record.version,
            one.record.digest,
            one.record.reliability,
            takeover_now(
                one.record.reliability,
                one.standbys,
                timings.get((network.name, one.id.fragment), Timings()),
                has_state=stateful.get(one.id.fragment, True),
            ),
            one.status.waits if one.status is not None and one.node_up else None,
        )
        for one in seen
    }
