"""A fragment that begins to write a topic which another fragment of its network wrote last. Pure.

It begins anew: at the positions that a deploy decided, without state, and with what the others have
promised of that topic. What it wrote there before that is not gone on with, since another fragment
has written beside its positions since.
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
from pipeline.lanes.sources import Begin, next_number
from pipeline.markers.commit_marker import NO_BATCH, CommitMarker, LeftOutput
from pipeline.markers.deploys import DeployId
from pipeline.markers.positions import InputPartition, MarkedSource, Positions
from pipeline.markers.signals import BoundaryRecord


@dataclass(frozen=True, slots=True)
class Succession:
    """What a deploy found when it gave an output topic to another fragment.

    Args:
        life: of the network.
        version: of the network, which that deploy made.
        output: Kafka's id of that topic.
        gone: the other fragments that had written there and write no topic of the network now.
        moved: those that write another one now.
    """

    life: NetworkLife
    version: NetworkVersion
    output: TopicId
    gone: tuple[FragmentName, ...]
    moved: tuple[FragmentName, ...]

    @property
    def token(self) -> str:
        """Names it in the commit markers of the fragment once it has begun anew."""
        return str(DeployId(self.life, self.version))

    def is_due(self, marker: CommitMarker | None, *, ran_before: bool) -> bool:
        """Whether the lane has not begun anew yet.

        Args:
            marker: its own last one.
            ran_before: whether the catalog says that it has run since it was deployed: its markers
                are lost then, if there is none.
        """
        if marker is None:
            return not ran_before
        return marker.anew != self.token


def left_by(
    output: TopicId, markers: Iterable[CommitMarker], boundaries: Iterable[BoundaryRecord]
) -> LeftOutput:
    """What all writers of a topic have left, none of which writes it any more.

    Args:
        output: Kafka's id of the topic.
        markers: the last one of each of them, and of the fragment itself.
        boundaries: the newest ones that were published.
    """
    found = [left for marker in markers if (left := marker.left_in(output)) is not None]
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
    """The sources of the lane, without what is settled by the promise that it takes over.

    Args:
        sources: new ones, in the names of its plan.
        begins: where they begin, as a deploy decided.
        left: what the other writers have left.
    """
    return tuple(
        replace(source, skipped_ms=left.promised_ms if begins[source.name].skips else None)
        for source in sources
    )


def positions_anew(
    sources: Iterable[MarkedSource], begins: Mapping[StreamName, Begin], left: LeftOutput
) -> dict[InputPartition, Offset]:
    """Where the lane begins in the topics that carry its streams.

    What was to be passed over by then was read on meanwhile, until its writer was stopped.
    """
    found: dict[InputPartition, Offset] = {}
    for source in sources:
        begin = begins[source.name]
        for partition, offset in begin.offsets.items():
            place = source.topic_id, partition
            read = left.read.get(place, offset) if begin.passes_over else offset
            at = InputPartition(source.name, source.topics[0][0], partition)
            found[at] = max(offset, read)
    return found


def begun_beside(
    first: CommitMarker, own: CommitMarker | None, left: LeftOutput, token: str
) -> CommitMarker:
    """The marker from which the lane begins anew.

    Args:
        first: as of a fragment that has never run, with its positions.
        own: the last one of its former life, as of a lane that writes the topic; None: it has
            never run. Its counts go on.
        left: what the other writers have left, and the promise of the former life.
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
    )


def with_positions(
    first: Positions, own: Positions, anew: Positions
) -> dict[InputPartition, Offset]:
    """Positions in all topics of a lane: in those of its own it goes on where it was.

    Args:
        first: as of a fragment that has never run.
        own: of its former life.
        anew: see `positions_anew`.
    """
    kept = {at: offset for at, offset in own.items() if at in first}
    return {**first, **kept, **anew}
