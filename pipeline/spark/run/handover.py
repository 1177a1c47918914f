"""Handover of a follower's state, or of its running query, to the lane that has claimed."""

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from pipeline.clock import Deadline
from pipeline.ids import BatchId, Incarnation, NetworkVersion
from pipeline.markers.commit_marker import CommitMarker
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.checkpoints import Checkpoints
from pipeline.spark.run.lane_inputs import LaneInputs
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.spark.run.query_runner import RunningQuery

_POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class FollowedState:
    """The state that a follower has left behind.

    Args:
        folder: its checkpoint.
        incarnation: the lane that it has followed.
        version: of its network.
    """

    folder: Path
    incarnation: Incarnation
    version: NetworkVersion


@dataclass(frozen=True, slots=True)
class FollowedQuery:
    """The query of a follower that has repeated every batch; it waits for the plan of the next.

    Args:
        query: to be taken over.
        checkpoints: of the lane; the folder of the epoch is the query's.
        inputs: of the query, with the schemas that it has met.
        lowered: the plan that it executes.
        batch: the last one that it has executed, by its own numbers.
    """

    query: RunningQuery
    checkpoints: Checkpoints
    inputs: LaneInputs
    lowered: Lowered
    batch: BatchId


class Followed(Protocol):
    """What a lane that starts has of the follower on its node."""

    def query(
        self, settings: LaneSettings, last: CommitMarker, stop: threading.Event
    ) -> FollowedQuery | None:
        """Wait, for a limited time, until the follower has repeated everything up to a marker.

        Args:
            settings: of the lane; a query for other settings is of no use.
            last: the last marker, after which nothing comes.
            stop: ends the wait.

        Returns:
            Its query, until `state` is called; None: it has none, or it is not that far.
        """

    def state(self) -> FollowedState | None:
        """End the follower, unless its query was taken over; returns the state it has left."""


class Handover:
    """Between the thread of a follower and that of the lane that starts on its node.

    wanted → offered → closed: taken over, or the follower has ended.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._wanted: CommitMarker | None = None
        self._offer: FollowedQuery | None = None
        self._closed = False

    # --- the lane -------------------------------------------------------------------------------

    def ask(
        self, last: CommitMarker, deadline: Deadline, stop: threading.Event
    ) -> FollowedQuery | None:
        """Wait for the query of a follower that has repeated everything up to a marker.

        None if the follower has ended, the time has passed, or `stop` is set: then nothing is
        offered any more.
        """
        with self._changed:
            self._wanted = last
            while not (self._offer or self._closed or deadline.passed or stop.is_set()):
                self._changed.wait(min(_POLL_S, deadline.remaining_s()))
            if self._offer is None:
                self._wanted = None
            return self._offer

    # --- the follower ---------------------------------------------------------------------------

    def is_due(self, at: CommitMarker) -> bool:
        """Whether a lane waits for the state of this marker."""
        return self._wanted == at

    def offer(self, query: FollowedQuery) -> bool:
        """Offer the query; False: the lane does not wait for it any more."""
        with self._changed:
            if self._wanted is None:
                return False
            self._offer = query
            self._changed.notify_all()
            return True

    def close(self) -> None:
        """Offer nothing any more."""
        with self._changed:
            self._closed, self._offer = True, None
            self._changed.notify_all()
