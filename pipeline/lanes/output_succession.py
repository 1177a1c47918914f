"""Output succession: a fragment takes over a topic that another fragment wrote last. Pure.

It begins anew: at the positions that a deploy decided, without state, and with the promises of the
other writers of that topic. It does not continue its own earlier output there, since another
fragment has written the topic since.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pipeline.ids import (
    NO_EPOCH,
    FragmentName,
    NetworkLife,
    NetworkVersion,
    Offset,
    StreamName,
    TopicId,
)
from pipeline.lanes.source_ids import Begin, next_number
from pipeline.markers.commit_marker import NO_BATCH, CommitMarker, LeftOutput
from pipeline.markers.deploys import DeployId
from pipeline.markers.positions import InputPartition, MarkedSource, Positions
from pipeline.markers.signals import BoundaryRecord


@dataclass(frozen=True, slots=True)
class Succession:
    """Takeover of an output topic, as decided by a deploy.

    Args:
        life: of the network.
        version: of the network, created by that deploy.
        output: Kafka's id of that topic.
        gone: earlier writers that write no topic of the network now.
        moved: earlier writers that write another topic now.
    """

    life: NetworkLife
    version: NetworkVersion
    output: TopicId
    gone: tuple[FragmentName, ...]
    moved: tuple[FragmentName, ...]

    @property
    def token(self) -> str:
        """Identifies the takeover in the fragment's commit markers once it has begun anew."""
        return str(DeployId(self.life, self.version))

    def is_due(self, marker: CommitMarker | None, *, ran_before: bool) -> bool:
        """Whether the lane still has to begin anew.

        Args:
            marker: its last marker.
            ran_before: whether it has run since it was deployed, by the catalog: then it has had
                markers.
        """
        if marker is None:
            return not ran_before
        return marker.anew != self.token


def began_late(marker: CommitMarker, expected: str | None, own: Succession | None) -> bool:
    """Whether a lane of an earlier version has begun anew after the fragment was deployed.

    Args:
        marker: the last one.
        expected: the takeover that the last marker named at the deploy; None: not recorded.
        own: the takeover of the deployed version; None: there is none.
    """
    return expected is not None and marker.anew not in {expected, own and own.token}


def left_by(
    output: TopicId, markers: Iterable[CommitMarker], boundaries: Iterable[BoundaryRecord]
) -> LeftOutput:
    """Combine the promises and positions of all former writers of a topic.

    Args:
        output: Kafka's id of the topic.
        markers: the last one of each of them, and of the fragment itself.
        boundaries: the newest ones that were published.
    """
    found = [left for marker in markers if (left := marker.left_output(output)) is not None]
    promises = [left.promised_ms for left in found]
    promises += [record.boundary_ms for record in boundaries if record.topic_id == output]
    read: dict[tuple[TopicId, int], Offset] = {}
    for left in found:
        for place, offset in left.read.items():
            read[place] = max(offset, read.get(place, offset))
    return LeftOutput(max((ms for ms in promises if ms is not None), default=None), read)


def sources_anew(
    sources: Iterable[MarkedSource], begins: Mapping[StreamName, Begin], left: LeftOutput
) -> tuple[MarkedSource, ...]:
    """The sources of the lane, with records skipped that the inherited promise settles.

    Args:
        sources: new ones, in the names of its plan.
        begins: where they begin, as decided by a deploy.
        left: promise and positions of the other writers.
    """
    return tuple(
        replace(source, skipped_ms=left.promised_ms if begins[source.name].skips else None)
        for source in sources
    )


def positions_anew(
    sources: Iterable[MarkedSource], begins: Mapping[StreamName, Begin], left: LeftOutput
) -> dict[InputPartition, Offset]:
    """Begin positions of the lane in the topics that carry its streams.

    Where records are passed over, the lane begins where the former writer stopped.
    """
    found: dict[InputPartition, Offset] = {}
    for source in sources:
        begin = begins[source.name]
        for partition, offset in begin.offsets.items():
            place = source.topic_id, partition
            read = left.read.get(place, offset) if begin.passes_over else offset
            found[InputPartition(source.name, source.topics[0][0], partition)] = max(offset, read)
    return found


def takeover_marker(
    first: CommitMarker, own: CommitMarker | None, left: LeftOutput, token: str
) -> CommitMarker:
    """The marker from which the lane begins anew.

    Args:
        first: marker of a first start, with its positions.
        own: last marker of its former life, with the topic as output; None: it has never run. Its
            counts continue.
        left: promise and positions of the other writers and of the former life.
        token: see `Succession`.
    """
    return replace(
        first,
        batch=NO_BATCH,
        epoch=NO_EPOCH if own is None else own.epoch,
        eviction_ms=left.promised_ms,
        boundary_ms=left.promised_ms,
        totals=first.totals if own is None else own.totals,
        chosen=True,
        anew=token,
        retired=0 if own is None else next_number(own),
        outputs_left={} if own is None else own.outputs_left,
        repeated=() if own is None else own.repeated,
    )


def with_positions(
    first: Positions, own: Positions, anew: Positions
) -> dict[InputPartition, Offset]:
    """Positions in all topics of a lane; it continues in its own topics where it was.

    Args:
        first: of a first start.
        own: of its former life.
        anew: see `positions_anew`.
    """
    kept = {at: offset for at, offset in own.items() if at in first}
    return {**first, **kept, **anew}
