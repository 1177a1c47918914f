"""The steps of lanes that take too long, by the last heartbeats of their nodes. Pure."""

from collections.abc import Mapping
from typing import Final

from brokers.kafka_interface import NoSuchTopicError
from brokers.log_reader import LogReader
from pipeline.errors import NewerFormatError
from pipeline.heartbeats.codec import NoHeartbeatError, decode
from pipeline.heartbeats.heartbeat import STEPS_EVERY
from pipeline.heartbeats.steps import StepAge
from pipeline.ids import Millis, NodeId, ParticipantId
from pipeline.names import heartbeats_topic

RECORDS_EACH: Final = 3 * STEPS_EVERY
"""So many heartbeats of each node are read: three seconds of them."""


def overdue_steps(
    log: LogReader, participant: ParticipantId, lives: Mapping[NodeId, Millis]
) -> Mapping[tuple[NodeId, str], StepAge]:
    """The overdue steps by node and fragment, `network.fragment`.

    A node whose heartbeats are not among the last ones has none: nothing is known of it.

    Args:
        log: reads the last records of a topic.
        participant: whose nodes.
        lives: the nodes that are up, each with its life.

    Raises:
        UnavailableError: Kafka does not answer.
    """
    if not lives:
        return {}
    try:
        records = log.newest(heartbeats_topic(participant), RECORDS_EACH * len(lives))
    except NoSuchTopicError:
        return {}
    last: dict[NodeId, tuple[StepAge, ...]] = {}
    for record in records:
        try:
            found = decode(record.value, f"topic {record.topic}, offset {record.offset}")
        except (NoHeartbeatError, NewerFormatError):
            continue
        if found.steps is not None and lives.get(found.node) == found.life:
            last[found.node] = found.steps
    return {
        (node, step.fragment): step
        for node, steps in last.items()
        for step in steps
        if step.is_overdue
    }
