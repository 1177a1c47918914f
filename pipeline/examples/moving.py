"""Changes of the node in the middle of a run, and the pauses of batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brokers.kafka_interface import RecordReader, TopicAdmin, complete
from pipeline.ids import Epoch, FragmentId, Offset
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


@dataclass(frozen=True, slots=True)
class Lost:
    """A node that was killed.

    Args:
        node: its name.
        fragments: number of fragments that it ran.
        pause_ms: the longest pause of one of them, as of a move; None: not known.
    """

    node: str
    fragments: int
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


def pauses_ms(markers: Sequence[CommitMarker]) -> Mapping[Epoch, int]:
    """The time between the last batch of an owner and the first one of the next, by its epoch.

    Markers that a new owner commits before its first batch are copies: they read nothing.
    """
    pauses: dict[Epoch, int] = {}
    last: CommitMarker | None = None
    for marker in markers:
        is_batch = last is None or marker.end != last.end
        if last is not None and is_batch and marker.epoch != last.epoch:
            pauses[marker.epoch] = marker.written_at_ms - last.written_at_ms
        if is_batch:
            last = marker
    return pauses


def pause_after_ms(markers: Sequence[CommitMarker], epoch: Epoch) -> int | None:
    """The pause of the first owner after an epoch; None: there was none, or no marker is left."""
    later = [(one, pause) for one, pause in pauses_ms(markers).items() if one > epoch]
    return min(later)[1] if later else None
