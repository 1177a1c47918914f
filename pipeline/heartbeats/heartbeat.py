"""A heartbeat: that the process of a node runs, and that its agent decides. Pure."""

from dataclasses import dataclass
from typing import Final

from pipeline.heartbeats.steps import StepAge
from pipeline.ids import Millis, NodeId, SteadyMillis

INTERVAL_MS: Final = 100
"""Between two heartbeats of a node."""
DELIVERY_MS: Final = 1_000
"""A heartbeat that Kafka does not accept within this time is dropped."""
STEPS_EVERY: Final = 10
"""The first heartbeat and each tenth after it contain the steps of the node's lanes."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """One heartbeat.

    Args:
        node: whose.
        life: the start of the node's process, as in `NodeRecord.started_at_ms`.
        number: counts up from 1 in each process that sends; a gap is a heartbeat that was lost.
        sent_ms: steady time of the sender's machine; only its own node compares it with a clock.
        agent_ms: time since the agent's last decision when this was sent.
        ended: the node's process has ended: its last heartbeat.
        steps: of its lanes; None: this heartbeat says nothing of them.
        wall_ms: wall time of the sender's machine, by which nothing is decided; None: an earlier
            version has sent it.
    """

    node: NodeId
    life: Millis
    number: int
    sent_ms: SteadyMillis
    agent_ms: int
    ended: bool = False
    steps: tuple[StepAge, ...] | None = None
    wall_ms: Millis | None = None
