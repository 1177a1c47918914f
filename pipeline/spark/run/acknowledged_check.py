"""Check that Kafka still has what a marker says was read and written, as partitions answer.

A partition that cannot be reached when the lane starts is not read before it has been checked.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from brokers.kafka_interface import Isolation, NotNowError, Place
from brokers.records import Ends
from pipeline.ids import FragmentName
from pipeline.lanes.acknowledged import lost_input, lost_output
from pipeline.markers.commit_marker import CommitMarker
from pipeline.planner.plan import Fragment
from pipeline.spark.run.lane_planner import LanePlanner
from pipeline.spark.run.reachable_ends import ReachableEnds

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class AcknowledgedCheck:
    """The check of one lane.

    Args:
        fragment: of the lane.
        output_id: Kafka's id of its output.
        ends: reads ends of topics.
        planner: plans nothing of the partitions that are not checked.
        ask_same: as `ask` of a `TopicWatch`: a topic that was created again has lost nothing.
        label: of the fragment, for the log.
        unchecked: the partitions that could not be reached.
    """

    fragment: Fragment
    output_id: str
    ends: ReachableEnds
    planner: LanePlanner
    ask_same: Callable[[], Callable[[], None]]
    label: str
    unchecked: frozenset[Place] = frozenset()

    def begin(self, marker: CommitMarker) -> None:
        """Check what can be reached; of its inputs, other partitions are left out for now.

        Raises:
            RefusedError: records are lost.
            UnavailableError, NotNowError: Kafka does not answer, or a partition of the output is
            among those.
        """
        output, name = self.fragment.output.topic, self.fragment.name
        inputs = {at.topic for at in marker.end}
        ends, missing = self.ends.read({output, *inputs}, Isolation.UNCOMMITTED)
        if any(topic == output for topic, _ in missing):
            raise NotNowError("a partition of it cannot be reached", place=f"topic {output}")
        lost = lost_output(marker, output, self.output_id, ends, name)
        if lost is not None:
            self.ask_same()()
            raise lost
        self._check(marker, ends, name)
        self._leave_out(missing)

    def go_on(self, marker: CommitMarker) -> None:
        """Check the other partitions that are answered by now, and all that end lower than before.

        Never waits for them.

        Raises:
            RefusedError: records are lost.
        """
        fallen = self.planner.fallen
        if fallen is not None:
            self._check(marker, fallen, self.fragment.name)
            self.planner.go_on()
        if not self.unchecked:
            return
        ends = self.planner.written(self.unchecked)
        answered = {(topic, part) for topic, there in ends.items() for part in there}
        if answered:
            self._check(marker, ends, self.fragment.name)
            self._leave_out(self.unchecked - answered)

    def _check(self, marker: CommitMarker, ends: Ends, name: FragmentName) -> None:
        lost = lost_input(marker, ends, name)
        if lost is not None:
            self.ask_same()()
            raise lost

    def _leave_out(self, places: frozenset[Place]) -> None:
        self.unchecked = places
        self.planner.unchecked(places)
        where = ", ".join(f"{topic}/{partition}" for topic, partition in sorted(places))
        if where:
            about = {"fragment": self.label}
            _log.warning("cannot be reached, and not read before: %s", where, extra=about)
