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
    Millis,
    NetworkLife,
    NetworkVersion,
    Offset,
    StreamName,
    TopicId,
)
from pipeline.lanes.deploys import DeployId
from pipeline.lanes.markers import NO_BATCH, CommitMarker
from pipeline.lanes.positions import InputPartition, MarkedSource, Positions
from pipeline.lanes.signals import BoundaryRecord
from pipeline.lanes.sources import Begin, next_number


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


@dataclass(frozen=True, slots=True)
class Left:
    """What the other writers have left, none of which writes the topic any more.

    Args:
        promised_ms: the largest boundary that one of them has promised; None: none has.
        read: how far they have read, per topic id and partition.
    """

    promised_ms: Millis | None
    read: Mapping[tuple[TopicId, int], Offset]


def left_by(
    output: TopicId, markers: Iterable[CommitMarker], boundaries: Iterable[BoundaryRecord]
) -> Left:
    """What other writers of a topic have left.

    Args:
        output: Kafka's id of the topic.
        markers: the newest ones of each of them, and of the fragment itself; those that are about
            another topic say nothing.
        boundaries: the newest ones that were published.
    """
    last = [marker for marker in markers if marker.output == output]
    promises = [marker.boundary_ms for marker in last]
    promises += [record.boundary_ms for record in boundaries if record.topic_id == output]
    read: dict[tuple[TopicId, int], Offset] = {}
    for marker in last:
        ids = {(source.name, source.topics[0][0]): source.topic_id for source in marker.sources}
        for at, offset in marker.end.items():
            if (topic_id := ids.get((at.input, at.topic))) is not None:
                place = topic_id, at.partition
                read[place] = max(offset, read.get(place, offset))
    return Left(max((ms for ms in promises if ms is not None), default=None), read)


def sources_anew(
    sources: Iterable[MarkedSource], begins: Mapping[StreamName, Begin], left: Left
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
    sources: Iterable[MarkedSource], begins: Mapping[StreamName, Begin], left: Left
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
    first: CommitMarker, own: CommitMarker | None, left: Left, token: str
) -> CommitMarker:
    """The marker from which the lane begins anew.

    Args:
        first: as of a fragment that has never run, with its positions.
        own: the last one of its former life; None: it has never run. Its counts go on.
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
