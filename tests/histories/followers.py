"""The followers of a node: the real code, on cooperative threads and the in-memory engine."""

from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any, Final

from pipeline.agent import follower_thread, followers, turns
from pipeline.agent.effects import Following
from pipeline.catalog.transfers import Transfers
from pipeline.clock import Clock
from pipeline.event_log.event import LoggedEvent
from pipeline.ids import NodeId
from pipeline.lanes.follower_phases import FollowerCourse
from pipeline.lanes.following import UnlikeOwnerError
from pipeline.spark.run import follower, handover
from pipeline.spark.run.handover import FollowedState
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_settings import LaneSettings
from tests.histories import engine, folders, kafka, looking
from tests.histories.lane_inputs import Inputs
from tests.histories.turns import Condition, Event, Turn

AT_ONCE: Final = 2
HANDOVER_S: Final = 3.0
"""A few rounds: some lanes begin from a state that is behind."""

STANDS_IN: Final[dict[Any, dict[str, Any]]] = {
    follower: {
        "Checkpoints": folders.Checkpoints,
        "MarkerTail": kafka.YieldingTail,
        "BatchLimit": engine.NoLimit,
        "check_room": lambda *_: None,
        "QueryRunner": engine.Runner,
        "RunningQuery": engine.RunningQuery,
        "Inspector": looking.Inspector,
        "emit": looking.emit,
        "ArrowRows": lambda rows: rows,
        "Steering": engine.Steering,
        "plan_next_batch": engine.plan_next_batch,
        "HANDOVER_S": HANDOVER_S,
    },
    follower_thread: {"threading": SimpleNamespace(Thread=Turn, Event=Event)},
    turns: {"threading": SimpleNamespace(Condition=Condition)},
    handover: {"threading": SimpleNamespace(Condition=Condition)},
}
"""What the in-memory engine replaces for followers, by module."""


class Follower(follower.Follower):
    """A real follower on the in-memory engine."""

    def __init__(  # noqa: PLR0913 - what is made, and by keyword where
        self,
        _: Following,
        settings: LaneSettings,
        watch: Callable[[], None],
        course: FollowerCourse,
        before: FollowedState | None,
        *,
        host: LaneHost,
        node: NodeId,
        rng: Callable[[], Random],
    ) -> None:
        self._rng = rng
        super().__init__(settings, watch, course, host, node, before)

    def _new_inputs(self, host: LaneHost, settings: LaneSettings) -> Inputs:
        return Inputs(host, settings, self._rng)

    def _unlike(self, differs: Any) -> UnlikeOwnerError:
        """A batch with another outcome is stored for the checks, though it is repaired."""
        assert Turn.current is not None
        Turn.current.facts["error"] = error = super()._unlike(differs)
        return error

    def run(self) -> None:
        """Run it; its error is stored for the checks."""
        try:
            super().run()
        except Exception as error:
            assert Turn.current is not None
            Turn.current.facts["error"] = error
            raise


class Followers(followers.Followers):
    """The followers of one node.

    Args:
        transfers: of the catalog.
        make: makes a follower.
        clock: of the end of a move.
        log: receives entries of the event log.
        node: its name.
    """

    def __init__(
        self,
        transfers: Transfers,
        make: follower_thread.MakeFollower,
        clock: Clock,
        log: Callable[[LoggedEvent], None],
        node: NodeId,
    ) -> None:
        super().__init__(transfers, make, clock, log, node, AT_ONCE)
        self._every: list[Any] = []

    @property
    def turns(self) -> list[Turn]:
        """The running threads of its followers, also of those that are no longer wanted."""
        self._every = [turn for turn in self._every if not turn.done]
        return list(self._every)

    def follow(self, fragments: tuple[Following, ...]) -> None:
        """Follow these fragments from now on, and no others."""
        super().follow(fragments)
        for _, running in sorted(self._threads.items()):
            if running._thread not in self._every:
                self._every.append(running._thread)
