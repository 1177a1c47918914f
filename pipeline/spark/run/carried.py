"""The last commit marker of a fragment, under the source names of the starting lane."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from brokers.kafka_interface import TopicAdmin, complete
from pipeline.ids import StreamName
from pipeline.lanes.source_ids import (
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
    """Marker and sources that a lane starts from.

    Args:
        marker: the last one; None: the fragment has never run.
        written: the marker as written, under the names of its own plan.
        anew: whether the lane begins anew from it, in a topic with results of others.
        sources: the lane's sources, with known or new ids.
        same: whether the marker's lane has read the same sources in the same order.
        not_before: begins of sources that were never read; records before them do not count.
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
    """Apply the marker to a lane's plan, with a position in every source that it reads.

    Raises:
        RefusedError: a source that was never read has no decided begin. UnavailableError,
        NotNowError: Kafka does not answer.
    """
    planned = planned_sources(settings.fragment, settings.topic_ids)
    if marker is None:
        return CarriedMarker(None, first_sources(planned))
    found = carry(marker, planned, settings.begins)
    begins = begins_of(found, settings.begins, settings.place)
    begins = held(begins, found.marker.sources, admin)
    now = begun(found, begins, rebuilds=settings.on_change(marker) is OnChange.REBUILD)
    not_before = {at: offset for at, offset in now.needed.items() if at.input in begins}
    return CarriedMarker(now, now.sources, found.same, not_before, marker)


def held(
    begins: Mapping[StreamName, Begin], sources: Iterable[MarkedSource], admin: TopicAdmin
) -> Mapping[StreamName, Begin]:
    """Begins of sources, raised to the present starts of their topics.

    Raises:
        UnavailableError, NotNowError: Kafka does not answer.
    """
    topics = {source.name: source.topics[0][0] for source in sources if source.name in begins}
    asked = sorted(topics.values())
    starts = complete(admin.start_offsets(asked), asked)
    return {name: begins[name].not_before(starts[topic]) for name, topic in topics.items()}
