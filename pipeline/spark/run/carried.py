"""The last commit marker of a fragment, as the lane that is starting names its sources."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from brokers.kafka_interface import TopicAdmin, complete
from pipeline.ids import StreamName
from pipeline.lanes.sources import (
    Begin,
    begins_of,
    begun,
    carry,
    first_sources,
    planned_sources,
)
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import MarkedSource, Positions
from pipeline.planner.state import OnChange
from pipeline.spark.run.lane_settings import LaneSettings


@dataclass(frozen=True, slots=True)
class CarriedMarker:
    """What a lane starts from.

    Args:
        marker: the last one; None: the fragment has never run.
        written: the same as it was written, in the names of its own plan.
        anew: whether it is the one that the lane begins anew from, beside others' results.
        sources: what the lane reads, with the ids that it has had or gets now.
        same: whether that is what the marker's lane has read, in the same order.
        not_before: where sources begin that were never read: nothing before that counts.
    """

    marker: CommitMarker | None
    sources: tuple[MarkedSource, ...]
    same: bool = True
    not_before: Positions = field(default_factory=dict)
    written: CommitMarker | None = None
    anew: bool = False


def carried(
    marker: CommitMarker | None, settings: LaneSettings, admin: TopicAdmin
) -> CarriedMarker:
    """The marker in the names of a lane's plan, with a position in every source that it reads.

    Raises:
        RefusedError: nobody has decided where a source begins that was never read.
        UnavailableError, NotNowError: Kafka does not answer.
    """
    planned = planned_sources(settings.fragment, settings.topic_ids)
    if marker is None:
        return CarriedMarker(None, first_sources(planned))
    found = carry(marker, planned, settings.begins)
    begins = begins_of(found, settings.begins, settings.place)
    begins = held(begins, found.marker.sources, admin)
    rebuilds = settings.on_change(marker) is OnChange.REBUILD
    now = begun(found, begins, rebuilds=rebuilds)
    not_before = {at: offset for at, offset in now.needed.items() if at.input in begins}
    return CarriedMarker(now, now.sources, found.same, not_before, marker)


def held(
    begins: Mapping[StreamName, Begin], sources: Iterable[MarkedSource], admin: TopicAdmin
) -> Mapping[StreamName, Begin]:
    """Where sources begin, without what was removed from their topics since that was decided.

    Raises:
        UnavailableError, NotNowError: Kafka does not answer.
    """
    topics = {source.name: source.topics[0][0] for source in sources if source.name in begins}
    asked = sorted(topics.values())
    starts = complete(admin.start_offsets(asked), asked)
    return {name: begins[name].not_before(starts[topic]) for name, topic in topics.items()}
