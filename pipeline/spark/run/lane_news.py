"""News for the lanes of a node: ends of topics, boundaries and activity, as its polls read them."""

import threading
from collections.abc import Iterable, Mapping
from typing import Final

from pipeline.boundaries.derived import PendingBoundary, WriterSeen, with_activity, with_boundary
from pipeline.boundaries.ends import Ends
from pipeline.boundaries.lane_time import LaneTime, Writer, Writers, writer_of
from pipeline.boundaries.profile import DerivedInput
from pipeline.ids import Epoch, NetworkLife, SteadyMillis, TopicName
from pipeline.markers.commit_marker import CommitMarker
from pipeline.spark.run.lane_planner import LanePlanner

UNCHANGED_MS: Final = 1_000
"""How often a lane gets the ends of its topics although none has changed: silence is measured by
them."""


class LaneNews:
    """Passes news to the planners of the lanes that run. Thread-safe.

    What was read before is kept for lanes that begin later.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: Ends | None = None
        self._writers: Writers = {}
        self._lives: Mapping[Writer, NetworkLife] = {}
        self._lanes: dict[LanePlanner, frozenset[TopicName]] = {}
        self._passed: dict[LanePlanner, Ends] = {}

    def watch(self, derived: Iterable[DerivedInput]) -> None:
        """Keep what is read of the writers of these inputs, and of no others.

        A network that was destroyed and deployed again has the same writers, and its topic the same
        id if it existed before; what was promised in the life before is dropped.
        """
        with self._lock:
            lives = {writer_of(one): one.life for one in derived}
            kept = {
                one: seen
                for one, seen in self._writers.items()
                if lives.get(one) == self._lives.get(one)
            }
            self._writers = {one: kept.get(one, WriterSeen()) for one in sorted(lives)}
            self._lives = lives

    def ends_read(self, ends: Ends) -> None:
        """Pass on ends of topics: to lanes of which one has changed, and to all now and then."""
        with self._lock:
            self._ends = ends
            for planner, topics in self._lanes.items():
                passed = self._passed.get(planner)
                if passed is None or _is_news(topics, passed, ends):
                    self._passed[planner] = ends
                    planner.ends_read(ends)

    def boundary_read(self, writer: Writer, epoch: Epoch, boundary: PendingBoundary) -> None:
        """Pass on a boundary of a watched writer."""
        with self._lock:
            seen = self._writers.get(writer)
            if seen is None:  # a deleted topic, or not a writer of this node's inputs
                return
            self._writers = {**self._writers, writer: with_boundary(seen, epoch, boundary)}
            for planner in self._lanes:
                planner.boundary_read(writer, epoch, boundary)

    def activity_read(
        self, writer: Writer, epoch: Epoch, *, idle: bool, at_ms: SteadyMillis
    ) -> None:
        """Pass on an activity report of a watched writer, read at steady time `at_ms`."""
        with self._lock:
            seen = self._writers.get(writer)
            if seen is None:
                return
            seen = with_activity(seen, epoch, idle=idle, at_ms=at_ms)
            self._writers = {**self._writers, writer: seen}
            for planner in self._lanes:
                planner.activity_read(writer, epoch, idle=idle, at_ms=at_ms)

    def join(
        self, planner: LanePlanner, topics: frozenset[TopicName], marker: CommitMarker
    ) -> LaneTime:
        """Begin a lane's event time at a marker, and pass it all news from now on."""
        with self._lock:
            time = planner.begin(marker, self._writers, self._ends)
            self._lanes[planner] = topics
            return time

    def leave(self, planner: LanePlanner) -> None:
        """Pass a lane no more news."""
        with self._lock:
            self._lanes.pop(planner, None)
            self._passed.pop(planner, None)


def _is_news(topics: frozenset[TopicName], before: Ends, ends: Ends) -> bool:
    if ends.read_at_ms - before.read_at_ms >= UNCHANGED_MS:
        return True
    if any(topic in topics for topic in ends.late):
        return True
    return any(ends.by_topic.get(topic) != before.by_topic.get(topic) for topic in topics)
