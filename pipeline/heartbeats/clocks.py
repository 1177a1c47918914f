"""Offsets of the clocks of machines from that of the broker that stamps the heartbeats. Pure.

A heartbeat contains the wall time at which it was sent, and has the one at which the broker has
appended it. Both are of one moment, but for the time that a delivery takes. Of the machine that
reads, the same follows from heartbeats that were appended while it read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from brokers.records import KafkaRecord
from pipeline.errors import NewerFormatError
from pipeline.heartbeats.codec import NoHeartbeatError, decode
from pipeline.heartbeats.heartbeat import DELIVERY_MS
from pipeline.ids import Millis, NodeId


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How far a clock is ahead of the broker's, in ms; negative: behind.

    Args:
        node: whose machine; None: this one.
        least_ms: at least so far.
        most_ms: at most so far.
    """

    node: NodeId | None
    least_ms: int
    most_ms: int

    @property
    def sure_ms(self) -> int:
        """How far it is ahead, or behind, in any case; 0: perhaps it is neither."""
        return max(0, self.least_ms) + min(0, self.most_ms)


def offsets_of_nodes(
    records: Iterable[KafkaRecord], lives: Mapping[NodeId, Millis]
) -> tuple[ClockOffset, ...]:
    """The offsets of nodes by their heartbeats, by name; of earlier versions nothing is known.

    Args:
        records: of the topic of heartbeats, stamped by the broker.
        lives: the nodes that are up, each with its life.
    """
    found: dict[NodeId, int] = {}
    for record in records:
        try:
            beat = decode(record.value, f"topic {record.topic}, offset {record.offset}")
        except (NoHeartbeatError, NewerFormatError):
            continue
        if beat.wall_ms is not None and lives.get(beat.node) == beat.life:
            # Of several the one that was delivered fastest.
            ahead_ms = beat.wall_ms - record.timestamp_ms
            found[beat.node] = max(ahead_ms, found.get(beat.node, ahead_ms))
    return tuple(
        ClockOffset(node, ahead_ms, ahead_ms + DELIVERY_MS)
        for node, ahead_ms in sorted(found.items())
    )


def offset_of_reader(
    records: Sequence[KafkaRecord], began_ms: Millis, ended_ms: Millis
) -> ClockOffset | None:
    """The offset of the machine that has read the records; None: there are none.

    Args:
        records: those that were appended while it read, stamped by the broker.
        began_ms: its wall time before all of them were appended.
        ended_ms: after all of them were read.
    """
    if not records:
        return None
    stamps = [record.timestamp_ms for record in records]
    return ClockOffset(None, began_ms - min(stamps), ended_ms - max(stamps))
