"""Records that retention removes, of fragments whose node does not report them: from Kafka."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pipeline.clock import Clock
from pipeline.deploy.expiring import Search
from pipeline.errors import MedusaError
from pipeline.ids import FragmentId, NetworkId, NetworkLife
from pipeline.lanes.expiring import ExpiringRecords
from pipeline.operations.connections import Connections
from pipeline.operations.status.observed import ObservedFragment

EVERY_S = 60.0
WITHIN_S = 3.0
"""After that time no further fragment is examined; also the timeout of a request."""


@dataclass
class ExpiringSearch:
    """Search for fragments without a lane; asks once a minute, however often it is called.

    Args:
        connections: to Kafka and ZooKeeper; Kafka is only asked if a fragment needs it.
        clock: of the interval.
    """

    connections: Connections
    clock: Clock
    _found: dict[FragmentId, tuple[ExpiringRecords, ...]] = field(default_factory=dict)
    _tried_s: dict[FragmentId, float] = field(default_factory=dict)
    problem: MedusaError | None = None
    """Why the last search has found nothing out; None: it has."""

    def of(self, seen: Sequence[ObservedFragment]) -> tuple[ObservedFragment, ...]:
        """The fragments with their expiring records; a Kafka that does not answer changes none."""
        unknown = [one for one in seen if one.expiring is None]
        now_s = self.clock.monotonic_s()
        due = [one for one in unknown if now_s - self._tried_s.get(one.id, -EVERY_S) >= EVERY_S]
        if due:
            self._search(due)
            self._tried_s.update((one.id, now_s) for one in due)
        return tuple(
            replace(one, expiring=self._found.get(one.id)) if one.expiring is None else one
            for one in seen
        )

    def _search(self, due: Sequence[ObservedFragment]) -> None:
        try:
            topics, log = self.connections.lookups(WITHIN_S)
            search = Search(topics, log, self.clock, WITHIN_S)
            self._found.update(search.of([(one.record, one.status) for one in due], self._life))
        except MedusaError as error:
            self.problem = error
        else:
            self.problem = None

    def _life(self, network: NetworkId) -> NetworkLife | None:
        found = self.connections.catalog.networks.get(network)
        return None if found is None else found.life
