"""Construction of a lane's start request, from its settings and from the servers."""

from pipeline.lanes.start.facts import StartRequest
from pipeline.planner.digest import fragment_digest, state_digest
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.carried import CarriedMarker
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.spark.run.schema_resolver import SchemaResolver


def start_request(
    settings: LaneSettings,
    found: CarriedMarker,
    lowered: Lowered,
    resolver: SchemaResolver,
    most: int,
) -> StartRequest:
    """Build the start request of a lane.

    Args:
        settings: of the lane.
        found: marker and sources that it starts from.
        lowered: its plan.
        resolver: reads topics and positions.
        most: maximum number of records in a batch now.

    Raises:
        UnavailableError, NotNowError: Kafka does not answer.
    """
    fragment, marker = settings.fragment, found.marker
    dead_letters = resolver.admin.describe((fragment.names.dead_letters,))
    return StartRequest(
        epoch=settings.epoch,
        state=state_digest(fragment),
        stateful=fragment.stateful_box is not None,
        on_change=settings.on_change(marker),
        place=settings.place,
        sources=found.sources,
        same_sources=found.same,
        most=most,
        dead_letter_topic_id=next((topic.topic_id for topic in dead_letters.values()), ""),
        plan=fragment_digest(fragment),
        ran_before=settings.ran_before,
        derived=fragment.derived,
        positions=resolver.positions_for(lowered, marker) if marker else {},
        anew=found.anew,
        deploy=settings.deploy,
        amnesia=settings.amnesia,
    )
