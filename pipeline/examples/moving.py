"""Move of a fragment in the middle of a run, and the pause of its batches."""

from collections.abc import Sequence
from dataclasses import dataclass

from brokers.kafka_interface import RecordReader, TopicAdmin, complete
from pipeline.ids import FragmentId, Offset
from pipeline.markers import codec
from pipeline.markers.commit_marker import CommitMarker
from pipeline.names import FragmentNames
from pipeline.planner.plan import Plan


@dataclass(frozen=True, slots=True)
class Moved:
    """A fragment that has moved.

    Args:
        fragment: its id.
        to: the node that runs it now.
        pause_ms: from its last batch on one node to its first one on the other; None: not known.
    """

    fragment: FragmentId
    to: str
    pause_ms: int | None


def movable(plan: Plan) -> FragmentId:
    """The fragment to move: the first one with a state, if there is any."""
    stateful = [one for one in plan.fragments if one.stateful_box is not None]
    return (*stateful, *plan.fragments)[0].names.id


def read_markers(
    fragment: FragmentId, reader: RecordReader, topics: TopicAdmin
) -> tuple[CommitMarker, ...]:
    """All commit markers of a fragment that its topic still has, in their order."""
    topic = FragmentNames(fragment).markers
    reader.assign({topic: {0: Offset(0)}})
    ends = complete(topics.end_offsets((topic,)), (topic,))
    values = (record.value for record in reader.read_to(ends))
    return tuple(codec.decode_marker(v, f"topic {topic}") for v in values if v is not None)


def pause_ms(markers: Sequence[CommitMarker]) -> int | None:
    """The longest time between the last batch of an owner and the first one of the next.

    None if no owner has followed on another. Markers that a new owner commits before its first
    batch are copies: they read nothing.
    """
    pauses, last = [], None
    for marker in markers:
        is_batch = last is None or marker.end != last.end
        if last is not None and is_batch and marker.epoch != last.epoch:
            pauses.append(marker.written_at_ms - last.written_at_ms)
        if is_batch:
            last = marker
    return max(pauses, default=None)
