"""The last commit marker of a fragment, as the lane that is starting names its sources."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.answers import complete
from pipeline.ids import StreamName
from pipeline.lanes.markers import CommitMarker
from pipeline.lanes.positions import MarkedSource, Positions
from pipeline.lanes.sources import (
    Begin,
    begins_of,
    begun,
    carry,
    first_sources,
    planned_sources,
)
from pipeline.planner.state import OnChange
from pipeline.spark.lane_settings import LaneSettings


@dataclass(frozen=True, slots=True)
class CarriedMarker:
    """What a lane starts from.

    Args:
        marker: the last one; None: the fragment has never run.
        written: the same as it was written, in the names of its own plan.
        sources: what the lane reads, with the ids that it has had or gets now.
        same: whether that is what the marker's lane has read, in the same order.
        not_before: where sources begin that were never read: nothing before that counts.
    """

    marker: CommitMarker | None
    sources: tuple[MarkedSource, ...]
    same: bool = True
    not_before: Positions = field(default_factory=dict)
    written: CommitMarker | None = None


def carried(
    marker: CommitMarker | None, settings: LaneSettings, admin: KafkaAdmin
) -> CarriedMarker:
    """The marker in the names of a lane's plan, with a position in every source that it reads.

    Raises:
        RefusedError: nobody has decided where a source begins that was never read.
        UnavailableError, NotNowError: Kafka does not answer.
    """
    planned = planned_sources(settings.fragment, settings.topic_ids)
    if marker is None:
        return CarriedMarker(None, first_sources(planned))
    found = carry(marker, planned)
    begins = begins_of(found, settings.begins, settings.place)
    begins = _held(begins, found.marker, admin)
    rebuilds = settings.on_change(marker) is OnChange.REBUILD
    now = begun(found.marker, begins, rebuilds=rebuilds)
    not_before = {at: offset for at, offset in now.needed.items() if at.input in begins}
    return CarriedMarker(now, now.sources, found.same, not_before, marker)


def _held(
    begins: Mapping[StreamName, Begin], marker: CommitMarker, admin: KafkaAdmin
) -> Mapping[StreamName, Begin]:
    """Without what was removed from the topics since it was decided where to begin."""
    topics = {s.name: s.topics[0][0] for s in marker.sources if s.name in begins}
    asked = sorted(topics.values())
    starts = complete(admin.start_offsets(asked), asked)
    return {name: begin.not_before(starts[topics[name]]) for name, begin in begins.items()}
