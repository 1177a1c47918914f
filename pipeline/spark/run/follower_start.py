"""How a follower gets its state: from a checkpoint of its owner, an earlier state, or the log."""

import logging
import threading
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from brokers.kafka_interface import NotNowError
from pipeline.clock import Deadline
from pipeline.ids import Epoch
from pipeline.lanes.following import NotToFollowError, UnlikeOwnerError
from pipeline.lanes.start.decision import Rebuild, decide_start
from pipeline.lanes.start.facts import CheckpointFacts, CommittedState, Unusable
from pipeline.lanes.start.plan import RebuiltCheckpoint, StartFacts, plan_start
from pipeline.markers.commit_marker import NO_BATCH, CommitMarker
from pipeline.spark.query.lowered import Lowered, restricted
from pipeline.spark.run.batch_sizer import BatchLimit
from pipeline.spark.run.carried import CarriedMarker, carried
from pipeline.spark.run.checkpoints import Checkpoints
from pipeline.spark.run.handover import FollowedState
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_inputs import LaneInputs
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.spark.run.marker_tail import MarkerTail
from pipeline.spark.run.owner_checkpoint import link_newest
from pipeline.spark.run.query_runner import QueryRunner
from pipeline.spark.run.rebuild import NotDeterministicError
from pipeline.spark.run.rebuild_query import RebuildQuery, Rebuilt
from pipeline.spark.run.start_request import start_request
from pipeline.spark.run.topic_identity import watch_topics

POLL_S: Final = 0.05
REACHED_S: Final = 5.0
"""How long the markers are awaited that the owner has written before its checkpoint."""
BEGINS: Final = "a follower begins"

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class FollowerStart:
    """Builds the state of a follower. Not thread-safe.

    Args:
        settings: of the lane that would start here now.
        host: of its node.
        checkpoints: whose folder is the follower's.
        inputs: of its queries.
        limit: of the size of a batch.
        runner: runs its queries.
        stop: ends it.
        before: the state of the follower whose place it takes; None: there is none, or it was used.
        most: maximum number of records in a batch now.
    """

    settings: LaneSettings
    host: LaneHost
    checkpoints: Checkpoints
    inputs: LaneInputs
    limit: BatchLimit
    runner: QueryRunner
    stop: threading.Event
    before: FollowedState | None = None
    most: int = field(init=False, default=0)
    _from: CarriedMarker = field(init=False, default=CarriedMarker(None, ()))
    _reached: bool = field(init=False, default=False)

    def reach(self, tail: MarkerTail, marker: CommitMarker) -> CommitMarker:
        """Link the owner's checkpoint, if it is reached; returns the marker to build up to.

        The owner goes on meanwhile: the marker has to be that of the checkpoint, or a later one.
        """
        host, last = self.host, marker
        if self.settings.fragment.stateful_box is None:
            return marker
        batch = link_newest(marker, self.settings, host, self.checkpoints, self.stop)
        what = "reading the markers up to the owner's checkpoint"
        deadline = Deadline.after(host.clock, REACHED_S, what)
        while last.batch < batch and not (self.stop.is_set() or deadline.passed):
            last = (last, *tail.next(POLL_S))[-1]
            if last.incarnation != marker.incarnation:
                return last
        self._reached = batch != NO_BATCH and last.batch >= batch
        return last

    def build(self, marker: CommitMarker, since: CommittedState | None) -> Rebuilt | None:
        """Build the state up to a marker, from an own one if it is given; None: it has none.

        Raises:
            NotToFollowError: the owner does not run this plan now.
            UnlikeOwnerError: a function refuses other records in each rebuild.
            MedusaError: the state cannot be built.
        """
        lowered = self.planned(marker)
        own, settings, admin = self._from.marker, self.settings, self.host.resolver.admin
        if own is None:
            raise NotToFollowError("the fragment has not run yet", place=settings.place)
        resolver, most = self.host.resolver, self.limit.at(own.end)
        request = start_request(settings, self._from, lowered, resolver, most)
        same = dict(own.end) == dict(marker.end)  # under the names of this plan, and of its own
        same = same and request.positions.keys() == own.end.keys()
        if request.plan != own.plan or not same:
            raise NotToFollowError(
                "its owner has not begun with the present plan or topics yet", place=settings.place
            )
        start = decide_start(own, self._beginning(own, lowered), request)
        if not isinstance(start, Rebuild):
            return None
        now_ms = self.host.clock.now_ms()
        plan = plan_start(start, request, StartFacts(own.incarnation, now_ms))
        if not isinstance(plan.checkpoint, RebuiltCheckpoint):
            return None
        # No writer is fenced here: a marker may be visible before the dead letters written with it.
        letters = settings.fragment.names.dead_letters
        if not admin.await_decided(letters):
            raise NotNowError(
                "a transaction that has written there is open, or it has no leader now, so which "
                "records were left out is not known",
                place=f"topic {letters}",
                hint="nothing has to be done: it is tried again",
            )
        self.most = most
        rebuild = plan.checkpoint.rebuild
        return self._rebuilt(rebuild if since is None else replace(rebuild, since=since), lowered)

    def planned(self, marker: CommitMarker) -> Lowered:
        """The plan with the partitions of a marker, and its sources.

        The topics may have more partitions by now, which the owner does not read yet.

        Raises:
            NotToFollowError: the owner has not carried out the last deploy.
            MedusaError: a topic was made again, or a server does not answer.
        """
        # The owner may have started again meanwhile.
        epoch = Epoch(max(self.settings.epoch, marker.epoch + 1))
        self.settings = settings = replace(self.settings.after(marker), epoch=epoch)
        admin = self.host.resolver.admin
        if settings.begins_anew(marker) or settings.on_change(marker) is not None:
            raise NotToFollowError(
                "its owner has not carried out the last deploy yet", place=settings.place
            )
        watch_topics(admin, settings.fragment, settings.topic_ids).ask()()
        self._from = carried(marker.with_output(settings.output_id), settings, admin)
        lowered, own = self.lowered(), self._from.marker
        return lowered if own is None else restricted(lowered, own.end)

    def lowered(self) -> Lowered:
        """The plan with the schemas that were met, and all partitions."""
        return self.inputs.lowered(self.settings, self._from.sources)

    def drop_before(self) -> None:
        """Remove the state of the follower whose place it takes."""
        before, self.before = self.before, None
        if before is not None:
            self.checkpoints.remove(before.folder)

    def _beginning(self, own: CommitMarker, lowered: Lowered) -> CheckpointFacts | Unusable:
        """The facts of the owner's checkpoint, or of the state of its predecessor; each once."""
        reached, self._reached = self._reached, False
        before, epoch = self.before, self.settings.epoch
        if reached:
            self.drop_before()
            return self.checkpoints.of_follower(epoch, own.incarnation, lowered)
        if before is None:
            return Unusable(BEGINS)
        found: CheckpointFacts | Unusable = Unusable("its state is of another incarnation")
        if before.incarnation == own.incarnation:
            found = self.checkpoints.take(epoch, before.folder, before.incarnation, lowered)
        self.drop_before()
        return found

    def _rebuilt(self, rebuild: Rebuild, lowered: Lowered) -> Rebuilt:
        query = RebuildQuery(
            settings=self.settings,
            host=self.host,
            runner=self.runner,
            limit=self.limit,
            folders=self.checkpoints,
            reader=self.inputs.reader,
            again=self.inputs.again,
            with_schemas=partial(
                self.inputs.with_schemas, self.lowered, str(self.settings.lane.fragment)
            ),
            stop=self.stop,
        )
        try:
            return query.run(rebuild, lowered)
        except NotDeterministicError as error:
            raise UnlikeOwnerError(error.message, place=error.place, hint=error.hint) from error
