"""Followers in memory: the real code of agents, lanes and followers, step by step."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pipeline.agent.state import Running
from pipeline.errors import UnavailableError
from pipeline.ids import FragmentId, FragmentName, LaneRole, NetworkId, NetworkName, TopicName
from pipeline.lanes.follower_phases import FollowerCourse, FollowerEvent, FollowerPhase
from pipeline.lanes.repairs import REPAIRS_MAX
from pipeline.lanes.start.decision import Rebuild
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run import follower
from pipeline.spark.run.disk import full
from pipeline.spark.run.last_marker import read_marker
from pipeline.spark.run.rebuild_query import RebuildQuery
from tests.histories.chain import Script
from tests.histories.documents import Box, Net, Stream
from tests.histories.followers import Follower
from tests.histories.history import History
from tests.histories.node import OWNER, remembering, toy_engine
from tests.histories.replaced import replaced
from tests.histories.rows import State

NET = Net(
    (Stream("s0", "t0"), Stream("s1", "t1")),
    (Box("b0", "aggregate", ("s0",), 8_000), Box("b1", "aggregate", ("s1",), 8_000)),
    {"b0": "o-b0", "b1": "o-b1"},
    secondaries=1,
)
FOLLOWED = FragmentId(NetworkId(OWNER, NetworkName("net")), FragmentName("b0"))
ROUNDS = 200
SETTLES = 8


class Scene:
    """A network with a follower of its first fragment, which has read some records.

    Attributes:
        builds: whether each state that this follower has built was built from the log.
        events: what has happened to it.
    """

    def __init__(self) -> None:
        self.history = History(Script(7, ()), frozenset({"unlike"}))
        self.world = self.history.world
        self.world.shared_folder = False  # else a follower begins from its owner's checkpoint
        self.builds: list[bool] = []
        self.events: list[FollowerEvent] = []

    def begin(self) -> None:
        """Deploy it, and wait for the follower."""
        for name in ("n1", "n2"):
            self.world.start_node(name)
        self.produce(4)
        self.deploy(NET)
        self.until(self.is_level, "level")

    def produce(self, number: int) -> None:
        """Send valid records to both topics, with a round after each."""
        for _ in range(number):
            for stream in NET.streams:
                self.world.produce(stream.topic, self.world.rng, kind=stream.kind, plain=True)
            self.world.round(1.0)

    def deploy(self, net: Net) -> None:
        """Deploy a document."""
        before = len(self.history.nets)
        self.history.deploy(net, Random(1))
        assert len(self.history.nets) == before + 1

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Go on, with records."""
        for _ in range(ROUNDS):
            if holds():
                return
            self.produce(1)
        raise AssertionError("\n".join([what, str(self.events), *self.history.outcome.log[-20:]]))

    def settle(self) -> None:
        """Wait until everything is published, and compare it with the reference."""
        self.history._settle()
        assert not self.history.outcome.wrong, "\n".join(self.history.outcome.log)

    @property
    def threads(self) -> dict[str, Any]:
        """The threads of the fragment's followers, by node."""
        return {
            name: node._followers._threads[FOLLOWED]
            for name, node in self.world.nodes.items()
            if FOLLOWED in node._followers._threads
        }

    @property
    def lane(self) -> Follower:
        """The follower."""
        (thread,) = self.threads.values()
        assert isinstance(thread._lane, Follower)
        return thread._lane

    @property
    def owner(self) -> str:
        """The node that runs the fragment."""
        (found,) = [
            name
            for name, node in self.world.nodes.items()
            if FOLLOWED in node.lanes and isinstance(node.lanes[FOLLOWED].phase, Running)
        ]
        return found

    def is_level(self) -> bool:
        """Whether the follower is level."""
        return [one.seen[0] for one in self.threads.values()] == [FollowerPhase.LEVEL]


def spoiled(state: State) -> State:
    """A state with other values in each window."""
    windows = {at: (sums[0], sums[1] + 1, *sums[2:]) for at, sums in state.windows.items()}
    return replace(state, windows=windows)


@pytest.fixture
def scene() -> Iterator[Scene]:
    """A network with a level follower."""
    found = Scene()
    world = found.world
    with remembering(), toy_engine(lambda: world.rng), observed(found):
        found.begin()
        found.builds.clear()
        found.events.clear()
        yield found
        world.end()


@contextmanager
def observed(scene: Scene) -> Iterator[None]:
    """Note what happens to the follower."""
    run, move = RebuildQuery.run, FollowerCourse.move

    def noted(query: RebuildQuery, start: Rebuild, lowered: Lowered) -> Any:
        lane = query.settings.lane
        if lane.role is LaneRole.FOLLOWER and lane.fragment == FOLLOWED:
            scene.builds.append(start.since is None)
        return run(query, start, lowered)

    def moved(course: FollowerCourse, event: FollowerEvent) -> None:
        move(course, event)
        if str(FOLLOWED) in course._place:
            scene.events.append(event)

    with replaced(RebuildQuery, "run", noted), replaced(FollowerCourse, "move", moved):
        yield


@contextmanager
def other_results(times: int) -> Iterator[None]:
    """The first results of so many batches of followers lack one."""
    left = [times]

    def other(rows: Any) -> Any:
        def to_arrow() -> pa.Table:
            table: pa.Table = rows.toArrow()
            is_own = rows.frame.reader.fragment.name == FOLLOWED.fragment
            if is_own and table.num_rows and left[0]:
                left[0] -= 1
                return table.filter(pa.array([n > 0 for n in range(table.num_rows)]))
            return table

        return SimpleNamespace(toArrow=to_arrow)

    with replaced(follower, "ArrowRows", other):
        yield
    assert left == [0]


@contextmanager
def spoiled_once() -> Iterator[list[State]]:
    """The state after one batch of the follower is another one, as by an error of ours."""
    found: list[State] = []

    def other(rows: Any) -> Any:
        def to_arrow() -> pa.Table:
            table: pa.Table = rows.toArrow()
            is_own = rows.frame.reader.fragment.name == FOLLOWED.fragment
            if is_own and rows.after.windows and not found:
                found.append(rows.after)
                rows.after = spoiled(rows.after)
            return table

        return SimpleNamespace(toArrow=to_arrow)

    with replaced(follower, "ArrowRows", other):
        yield found


# --- repairs ------------------------------------------------------------------------------------


def test_a_follower_with_other_results_builds_its_state_from_the_log(scene: Scene) -> None:
    """It hands nothing over before; then it is level."""
    with other_results(1):
        scene.until(lambda: FollowerEvent.DIFFERED in scene.events, "a difference")
        scene.until(scene.is_level, "level")
    assert scene.builds == [True]
    assert scene.events[-3:] == [
        FollowerEvent.DIFFERED,
        FollowerEvent.BUILT,
        FollowerEvent.REPEATED_ALL,
    ]
    scene.world.kill_node(scene.owner, lose_folder=True)
    scene.settle()


def test_a_state_that_has_differed_before_is_built_from_the_log(scene: Scene) -> None:
    """The results that show it come later than the error."""
    with spoiled_once():
        scene.until(lambda: True in scene.builds, "a build from the log")
    scene.until(scene.is_level, "level")
    assert FollowerEvent.FAILED not in scene.events
    scene.world.kill_node(scene.owner, lose_folder=True)
    scene.settle()


def test_a_state_in_doubt_is_not_handed_over(scene: Scene) -> None:
    """The owner is lost after the difference."""
    with spoiled_once():
        scene.until(lambda: FollowerEvent.DIFFERED in scene.events, "a difference")
    scene.world.kill_node(scene.owner, lose_folder=True)
    scene.settle()


def test_a_follower_whose_repairs_do_not_help_is_discarded(scene: Scene) -> None:
    """After three in a row; its owner goes on, and another node builds the state from the log."""
    with other_results(REPAIRS_MAX + 1):
        scene.until(lambda: FollowerEvent.FAILED in scene.events, "the end")
    assert scene.events.count(FollowerEvent.DIFFERED) == REPAIRS_MAX
    assert len(scene.builds) == REPAIRS_MAX
    ((phase, problem),) = [thread.seen for thread in scene.threads.values()]
    assert phase is FollowerPhase.DISCARDED
    assert "also after 3 repairs in a row: results: " in problem
    assert "no box of it calls user code" in problem
    scene.world.kill_node(scene.owner, lose_folder=True)
    scene.settle()


# --- what it goes on through --------------------------------------------------------------------


def test_a_follower_goes_on_when_an_input_gets_partitions(scene: Scene) -> None:
    """It begins to read them when its owner does, and builds nothing."""
    for _ in range(2):
        scene.world.kafka.grow(TopicName("t0"))
        scene.produce(SETTLES)
        scene.until(lambda: newest_marker(scene).end.keys() == read(scene), "the same partitions")
        scene.until(scene.is_level, "level")
    assert len([at for at in read(scene) if at.topic == "t0"]) == 4
    assert scene.builds == []
    assert FollowerEvent.FAILED not in scene.events
    scene.world.kill_node(scene.owner, lose_folder=True)
    scene.settle()


def read(scene: Scene) -> Any:
    """The partitions that the follower reads."""
    return scene.lane._markers.running.end.keys()


def newest_marker(scene: Scene) -> Any:
    """The last marker of the fragment."""
    names = scene.lane._start.settings.fragment.names
    found = read_marker(scene.world.kafka, names)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "newer",
    [
        replace(NET, boxes=(NET.boxes[0], replace(NET.boxes[1], number=4_000))),
        replace(NET, secondaries=2),
        replace(NET, priority="high"),
    ],
    ids=["another fragment", "reliability", "priority"],
)
def test_a_follower_goes_on_when_a_deploy_does_not_change_its_plan(
    scene: Scene, newer: Net
) -> None:
    """It is the same one."""
    before = scene.lane
    scene.deploy(newer)
    scene.produce(SETTLES)
    assert scene.lane is before
    assert scene.events == []
    assert scene.builds == []


@pytest.mark.parametrize(
    "newer",
    [
        replace(NET, outputs={**NET.outputs, "b0": "o-new"}),
        replace(NET, streams=(replace(NET.streams[0], lateness_ms=5_000), NET.streams[1])),
        replace(NET, streams=(replace(NET.streams[0], ahead_ms=30_000), NET.streams[1])),
    ],
    ids=["output", "lateness", "ahead"],
)
def test_the_state_is_kept_when_a_deploy_changes_the_plan_and_not_the_state(
    scene: Scene, newer: Net
) -> None:
    """The follower of the new version begins from the state of the one before."""
    before = scene.lane
    scene.deploy(newer)
    scene.until(lambda: bool(scene.builds), "another follower")
    scene.until(scene.is_level, "level")
    assert scene.lane is not before
    assert scene.builds == [False]
    scene.world.kill_node(scene.owner, lose_folder=True)
    scene.settle()


def test_the_state_is_kept_after_a_failure(scene: Scene) -> None:
    """As of a server: the next follower begins from it."""
    before = scene.lane
    kafka_is_down = failing(
        UnavailableError("Kafka is down"), lambda at, *_: at.sources[0].name == "s0"
    )
    with replaced(follower, "difference", kafka_is_down):
        scene.until(lambda: FollowerEvent.FAILED in scene.events, "a failure")
    scene.until(scene.is_level, "level")
    assert scene.lane is not before
    assert scene.builds == [False]
    scene.world.kill_node(scene.owner, lose_folder=True)
    scene.settle()


def test_a_follower_on_a_full_disk_gives_its_state_up(scene: Scene) -> None:
    """It tries again later, from the log; the owner goes on."""
    before = scene.lane
    folder: Any = before._folder
    no_room = failing(full("2 MiB are free"), lambda _, own: own is folder)
    with replaced(follower, "check_room", no_room):
        scene.until(lambda: FollowerEvent.FAILED in scene.events, "a failure")
    assert folder.states == {}
    assert before.followed is None
    ((_, problem),) = [thread.seen for thread in scene.threads.values()]
    assert f"{folder}: the disk is full: 2 MiB are free" in problem
    scene.until(scene.is_level, "level")
    assert scene.builds == [True]
    scene.settle()


def failing(error: Exception, is_meant: Callable[..., bool]) -> Callable[..., None]:
    """Raises once, for the follower that is meant; else there is nothing wrong."""
    left = [error]

    def fail(*given: Any) -> None:
        if left and is_meant(*given):
            raise left.pop()

    return fail
