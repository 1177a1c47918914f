"""The state that a lane starts from: of its follower, its own checkpoint, a copy, or of none."""

import logging
import shutil
import threading
from dataclasses import dataclass, field

from pipeline.checkpoint_store.manifest import CheckpointCopy
from pipeline.errors import MedusaError
from pipeline.ids import BatchId
from pipeline.lanes.start.decision import Rebuild, SkipToEnd, Start, decide_start
from pipeline.lanes.start.facts import CheckpointFacts, CommittedState, StartRequest, Unusable
from pipeline.markers.commit_marker import NO_BATCH, CommitMarker
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.checkpoint_fetch import Wanted
from pipeline.spark.run.checkpoints import Checkpoints, copied_facts
from pipeline.spark.run.handover import Followed, FollowedQuery, FollowedState
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.spark.run.owner_checkpoint import link_copy


@dataclass(slots=True)
class StartState:
    """Decides the start of a lane; what it decides from is in the folder of the epoch then.

    Args:
        settings: of the lane.
        host: of its node.
        checkpoints: of the lane.
        followed: the follower of its fragment on this node; None: there is none.
        stop: ends waiting.
        log: of the lane.
    """

    settings: LaneSettings
    host: LaneHost
    checkpoints: Checkpoints
    followed: Followed | None
    stop: threading.Event
    log: "logging.LoggerAdapter[logging.Logger]"
    taken: FollowedQuery | None = field(init=False, default=None)
    """The query that the lane takes over; None: it begins one."""
    left: FollowedState | None = field(init=False, default=None)
    """What the follower has left; of no use once the lane has begun."""

    def decided(
        self,
        last: CommitMarker | None,
        marker: CommitMarker | None,
        lowered: Lowered,
        request: StartRequest,
    ) -> Start:
        """Decide the start: from what a follower has, if it is of use; else as without.

        Args:
            last: the last marker in the topic.
            marker: from which the lane starts, under the names of its plan.
            lowered: the fragment.
            request: the lane.
        """
        if last is None or marker is None:
            return decide_start(marker, self.checkpoint(marker, lowered), request)
        if self.followed is not None:
            running = self._of_query(self.followed, last, marker, request)
            if running is not None:
                return running
            self.left = self.followed.state()
        start = decide_start(marker, self.checkpoint(marker, lowered), request)
        if not isinstance(start, Rebuild | SkipToEnd) or _is_chosen(start):
            return start
        if self.left is not None:
            own = self._of_state(self.left, marker, start, lowered, request)
            if own is not None:
                return own
        if isinstance(start, SkipToEnd):  # a copy is behind
            return start
        return self._of_copy(last, marker, start, lowered, request)

    def checkpoint(
        self, marker: CommitMarker | None, lowered: Lowered
    ) -> CheckpointFacts | Unusable:
        """Facts of the lane's copy of the checkpoint, made in the folder of its epoch.

        The last owner is fenced, but may still write into its folder: only the copy is constant.
        """
        epoch, checkpoints = self.settings.epoch, self.checkpoints
        if marker is None:
            return checkpoints.any(epoch)
        return checkpoints.adopt(epoch, marker.incarnation, lowered)

    def drop_left(self) -> None:
        """Remove what the follower has left, which is linked, or of no use."""
        if self.left is not None:
            shutil.rmtree(self.left.folder, ignore_errors=True)

    def _of_query(
        self,
        followed: Followed,
        last: CommitMarker,
        marker: CommitMarker,
        request: StartRequest,
    ) -> Rebuild | None:
        """Start with the query of a follower; None: its state is not that of the last marker."""
        found = followed.query(self.settings, last, self.stop)
        if found is None or request.positions.keys() != marker.end.keys():
            return None
        facts = found.checkpoints.of_follower(request.epoch, last.incarnation, found.lowered)
        start = decide_start(marker, facts, request)
        since = start.since if isinstance(start, Rebuild) else None
        if not isinstance(start, Rebuild) or since is None or since.batch != found.batch:
            return None
        if not since.is_at(marker.end, start.eviction_ms):
            return None
        self.taken = found
        return start

    def _of_state(
        self,
        left: FollowedState,
        marker: CommitMarker,
        found: Rebuild | SkipToEnd,
        lowered: Lowered,
        request: StartRequest,
    ) -> Start | None:
        """Start from the state of a follower; None: it is of no use, or not further than found.

        A node that shares the folder of the owner may have a later checkpoint than a copy.
        """
        if left.incarnation != marker.incarnation or left.version != self.settings.version:
            return None
        own = self.checkpoints
        start = decide_start(marker, own.left(left.folder, left.incarnation, lowered), request)
        if not _is_further(start, found):
            return None
        taken = own.take(request.epoch, left.folder, left.incarnation, lowered)
        start = decide_start(marker, taken, request)
        if _is_further(start, found):
            return start
        # The folder of the epoch is not what has been found any more.
        return decide_start(marker, self.checkpoint(marker, lowered), request)

    def _of_copy(
        self,
        last: CommitMarker,
        marker: CommitMarker,
        found: Rebuild,
        lowered: Lowered,
        request: StartRequest,
    ) -> Start:
        """Start from the newest copy in the checkpoint store, if it is of use; else as found.

        It is of use if it is of a later batch than what the start has found here.
        """
        here, own = _batch(found), self.checkpoints

        def fits(copy: CheckpointCopy) -> bool:
            facts = copied_facts(copy, lowered)
            return facts is None or _is_further(decide_start(marker, facts, request), found)

        wanted = Wanted.of(self.settings, last, self.host.spark.version, fits)
        try:
            batch = link_copy(wanted, request.epoch, self.host, own, here, self.stop)
        except MedusaError as error:
            self.log.warning("no copy of the checkpoint is used: %s", error)
            return found
        if batch is None:
            return found
        if batch != NO_BATCH:
            facts = self.checkpoints.of_follower(request.epoch, last.incarnation, lowered)
            start = decide_start(marker, facts, request)
            if isinstance(start, Rebuild) and start.since is not None:
                self.log.info("goes on from a copy of its checkpoint of batch %d", batch)
                return start
        # The folder of the epoch has the copy now.
        return decide_start(marker, Unusable(f"{found.why}; its copy is of no use"), request)


def _is_chosen(start: Rebuild | SkipToEnd) -> bool:
    """Whether the user has chosen the state: then no other is of use."""
    return isinstance(start, Rebuild) and start.chosen


def _is_further(start: Start, found: Rebuild | SkipToEnd) -> bool:
    """Whether a start begins from a state that has read more than what was found."""
    since, other = _since(start), _since(found)
    if since is None:
        return False
    return other is None or sum(since.end.values()) > sum(other.end.values())


def _since(start: Start) -> CommittedState | None:
    """The state that a start begins from; None: it has none."""
    return start.since if isinstance(start, Rebuild) else None


def _batch(start: Rebuild) -> BatchId:
    """The batch of the state that a start begins from."""
    return NO_BATCH if start.since is None else start.since.batch
