"""Spark session of a replay, opened at first use."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from pipeline.ids import Millis, Offset
from pipeline.markers.positions import InputPartition
from pipeline.operations.connections import Connections
from pipeline.operations.replay.fragment import ReplayedFragment

if TYPE_CHECKING:
    from pipeline.spark.run.replay import Recomputer


class Engine:
    """Computes records and results of a replayed fragment.

    Args:
        what: the fragment.
        connections: own the session, which ends with them.
        tell: receives a line for each step that takes a while.
    """

    def __init__(
        self, what: ReplayedFragment, connections: Connections, tell: Callable[[str], None]
    ) -> None:
        self.what = what
        self.tell = tell
        self._connections = connections

    @cached_property
    def recomputer(self) -> "Recomputer":
        """The fragment in a Spark session."""
        self.tell("opening a Spark session")
        return self._connections.recomputer(self.what.fragment, self.what.topic_ids)

    def event_time(self, at: InputPartition, offset: Offset) -> Millis:
        """The event time of one record of an input.

        Raises:
            RefusedError: there is no such record, or it has none.
        """
        return self.recomputer.event_time(at, offset)
