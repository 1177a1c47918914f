"""What the plan of a start needs from topics and the clock, besides its decision."""

import logging
from dataclasses import dataclass
from functools import partial

from pipeline.ids import Incarnation
from pipeline.lanes.new_partitions import reassigned
from pipeline.lanes.source_ids import first_positions
from pipeline.lanes.start.decision import BeginAt, FirstStart, Rebuild, SkipToEnd, Start
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.plan import StartFacts
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import Positions
from pipeline.planner.state import OnChange
from pipeline.spark.batch.inspection import Inspector
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.carried import CarriedMarker
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_inputs import LaneInputs
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.spark.run.newest_offsets import NewestOffsets
from pipeline.spark.run.rebuild import Log


@dataclass(frozen=True, slots=True)
class StartReads:
    """Reads the facts of a start.

    Args:
        settings: of the lane.
        host: of its node.
        inputs: reads the lane's inputs.
        log: of the lane.
    """

    settings: LaneSettings
    host: LaneHost
    inputs: LaneInputs
    log: "logging.LoggerAdapter[logging.Logger]"

    def facts(
        self,
        start: Start,
        request: StartRequest,
        lowered: Lowered,
        carried: CarriedMarker,
        incarnation: Incarnation,
    ) -> StartFacts:
        """The facts that the plan of a start needs.

        Args:
            start: as decided.
            request: the lane.
            lowered: its plan.
            carried: what it starts from.
            incarnation: for a lane that begins anew.

        Raises:
            UnavailableError, NotNowError: Kafka does not answer.
        """
        host, log = self.host, Log(self.host.kafka, self.host.resolver.admin)
        first: Positions = {}
        clamped: CommitMarker | None = None
        skipped: CommitMarker | None = None
        if isinstance(start, FirstStart):
            positions = host.resolver.start_positions(lowered)
            first = first_positions(positions, carried.sources, self.settings.begins)
        elif isinstance(start, BeginAt | Rebuild) and request.on_change is OnChange.EMPTY:
            marker = reassigned(start.marker, request.positions)
            clamped = log.clamped(marker, lowered, self.log)
        elif isinstance(start, SkipToEnd):
            marker = reassigned(start.marker, request.positions)
            skipped = self._skipped_to_end(marker, start.why, lowered, log, incarnation)
        return StartFacts(
            incarnation=incarnation,
            now_ms=host.clock.now_ms(),
            first=first,
            clamped=clamped,
            written=carried.written,
            not_before=carried.not_before,
            after_gap=skipped,
        )

    def _skipped_to_end(
        self, marker: CommitMarker, why: str, lowered: Lowered, log: Log, incarnation: Incarnation
    ) -> CommitMarker:
        """The marker at the newest offsets, with the gap."""
        earliest = partial(log.earliest, lowered)
        inspector = partial(Inspector, lowered, self.inputs.again())
        newest = NewestOffsets(self.host.resolver.admin, earliest, inspector, self.host.clock)
        found = newest.skipped_to(marker, lowered, self.settings.fragment.shape, incarnation)
        omitted = 0 if found.gap is None else found.gap.offsets
        self.log.warning("%s: it begins with an empty state; %d offsets omitted", why, omitted)
        return found
