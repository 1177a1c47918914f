"""Steps of lanes that take too long: from the heartbeats of the nodes, in Kafka."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from brokers.log_reader import LogReader
from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.clock import Clock
from pipeline.errors import MedusaError
from pipeline.heartbeats.last_steps import overdue_steps
from pipeline.operations.connections import Connections
from pipeline.operations.status.observed import ObservedFragment

AGAIN_S = 60.0
"""How long a Kafka that did not answer is not asked again."""
WITHIN_S = 2.0
_HAVE_STEPS: Final = frozenset({LaneState.STARTING, LaneState.RUNNING, LaneState.REBUILDING})
"""A lane that waits for its next try, has failed or is stopped has no thread."""


@dataclass
class StepSearch:
    """Search for the overdue steps of the fragments that run.

    Args:
        connections: to Kafka and ZooKeeper; Kafka is only asked if a fragment has a lane whose
            steps have limits.
        clock: of the pause after a failure.
    """

    connections: Connections
    clock: Clock
    problem: MedusaError | None = None
    """Why nothing is known of steps; None: it is."""
    _failed_s: float | None = field(default=None, init=False)
    _log: LogReader | None = field(default=None, init=False)

    def of(self, seen: Sequence[ObservedFragment]) -> tuple[ObservedFragment, ...]:
        """The fragments with their overdue steps; a Kafka that does not answer changes none."""
        now_s, failed_s = self.clock.monotonic_s(), self._failed_s
        is_due = failed_s is None or now_s - failed_s >= AGAIN_S
        running = (status for one in seen if (status := _with_steps(one)) is not None)
        lives = {status.node: status.life for status in running}
        if not is_due or not lives:
            return tuple(seen)
        try:
            if self._log is None:
                _, self._log = self.connections.lookups(WITHIN_S)
            found = overdue_steps(self._log, self.connections.participant, lives)
        except MedusaError as error:
            self.problem, self._failed_s = error, now_s
            return tuple(seen)
        self.problem = self._failed_s = None
        return tuple(
            replace(one, overdue=found.get((status.node, str(one.id))))
            if (status := _with_steps(one)) is not None
            else one
            for one in seen
        )


def _with_steps(one: ObservedFragment) -> FragmentStatus | None:
    """The report of a fragment whose lane starts or runs; None: no thread makes steps for it."""
    status = one.status
    has_lane = status is not None and one.node_up and status.state in _HAVE_STEPS
    return status if has_lane else None
