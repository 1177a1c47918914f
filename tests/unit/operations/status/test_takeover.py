"""What a takeover would cost now."""

from dataclasses import replace
from typing import cast

import pytest

from brokers.kafka_interface import TopicAdmin
from brokers.log_reader import LogReader
from brokers.versioned_store import Set
from pipeline.catalog.records import Standby
from pipeline.errors import UnavailableError
from pipeline.event_log.codec import encode
from pipeline.event_log.event import EventKind, LoggedEvent
from pipeline.event_log.timings import Timings
from pipeline.ids import FragmentName, Millis, NodeId
from pipeline.lanes.follower_phases import FollowerPhase
from pipeline.names import Znodes, events_topic
from pipeline.operations.connections import Connections
from pipeline.operations.status.fragments import fragments_status
from pipeline.operations.status.standbys import ObservedStandby
from pipeline.operations.status.takeover import TakeoverNow, TakeoverWay, takeover_now
from pipeline.operations.status.takeover_search import EVERY_S, TakeoverSearch, measured_of
from pipeline.reliability import (
    UPSTREAM_BACKUP,
    Reliability,
    with_active_standbys,
    with_passive_standbys,
)
from tests.unit.deploy.twins import NOW, World
from tests.unit.kafka import create
from tests.unit.operations.status.test_steps import CARS, NODE, US, run
from tests.unit.operations.twins import TwinConnections, TwinRecomputer

N2, N3 = NodeId("n2"), NodeId("n3")
ACTIVE, PASSIVE = with_active_standbys(2), with_passive_standbys(1)
LEVEL = ObservedStandby(N2, FollowerPhase.LEVEL)
COPY = ObservedStandby(N2, FollowerPhase.LEVEL, reached_ms=Millis(NOW), state_bytes=4_096)
BEHIND = ObservedStandby(N3, FollowerPhase.CATCHING_UP, reached_ms=Millis(NOW - 9_000))
BUILDING = ObservedStandby(N3, FollowerPhase.BUILDING)
STATELESS = ObservedStandby(N2, FollowerPhase.WAITING)
TAKEN = LoggedEvent(
    Millis(NOW), EventKind.TAKEN_OVER, "node n1", "cars", "moving", "n1", "node n0 is down",
    parts_ms=(("noticed", 100), ("claimed", 50)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("reliability", "standbys", "expected"),
    [
        (ACTIVE, (LEVEL, BUILDING), TakeoverNow(TakeoverWay.GOES_ON, N2)),
        (ACTIVE, (BUILDING, LEVEL), TakeoverNow(TakeoverWay.GOES_ON, N2)),
        (ACTIVE, (BEHIND,), TakeoverNow(TakeoverWay.READS_SINCE, N3, BEHIND.reached_ms)),
        (ACTIVE, (BUILDING,), TakeoverNow(TakeoverWay.BUILDS)),
        (ACTIVE, (STATELESS,), TakeoverNow(TakeoverWay.STARTS, N2)),
        (ACTIVE, (), TakeoverNow(TakeoverWay.BUILDS)),
        (PASSIVE, (COPY,), TakeoverNow(TakeoverWay.READS_SINCE, N2, Millis(NOW), 4_096)),
        (PASSIVE, (LEVEL,), TakeoverNow(TakeoverWay.READS_SINCE, N2)),
        (UPSTREAM_BACKUP, (), TakeoverNow(TakeoverWay.BUILDS)),
    ],
)  # fmt: skip
def test_what_the_node_would_do(
    reliability: Reliability, standbys: tuple[ObservedStandby, ...], expected: TakeoverNow
) -> None:
    """The first secondary that is level goes first, as the placement has it."""
    assert takeover_now(reliability, standbys, Timings()) == expected


def test_a_fragment_without_state_starts() -> None:
    """By its plan, if it has no secondary that says so."""
    found = takeover_now(UPSTREAM_BACKUP, (), Timings(), has_state=False)
    assert found.way is TakeoverWay.STARTS


class Counting(TwinConnections):
    """Counts the connections to Kafka; they fail when asked for."""

    opened = 0
    fails = False

    def lookups(self, within_s: float) -> tuple[TopicAdmin, LogReader]:
        """Count one connection."""
        self.opened += 1
        if self.fails:
            raise UnavailableError("no answer")
        return super().lookups(within_s)


@pytest.fixture
def there(world: World) -> Counting:
    """The fragment `moving` runs on n1, and its last takeover is logged, after another record."""
    run(world)
    create(world.kafka, events_topic(US))
    world.kafka.append(events_topic(US), None, b"no entry")
    world.kafka.append(events_topic(US), None, encode(TAKEN))
    return Counting(world, TwinRecomputer())


def followed(world: World) -> None:
    """Give `moving` a secondary, which is level."""
    path = Znodes("").fragment(CARS, FragmentName("moving"))
    stored = world.catalog.store.get(path)
    assert stored is not None
    text = stored.value.decode().replace('"active_standbys":0', '"active_standbys":1')
    world.catalog.store.apply((Set(path, text.encode(), stored.version),))
    other = replace(NODE, node=N2)
    world.catalog.nodes.register(other)
    standby = Standby(CARS, FragmentName("moving"), FollowerPhase.LEVEL, "", NOW)
    world.catalog.standbys.report(other, (standby,))


def found_of(search: TakeoverSearch, there: Counting) -> dict[str, TakeoverNow | None]:
    """What takeovers would cost, by fragment."""
    seen = fragments_status(None, cast("Connections", there))
    return {one.id.fragment: one.takeover for one in search.of(seen)}


def test_a_fragment_with_secondaries_has_its_last_takeover(there: Counting, world: World) -> None:
    """Kafka is asked once in a while, however often the status is."""
    followed(world)
    search = TakeoverSearch(cast("Connections", there), world.clock)
    for _ in range(2):
        found = found_of(search, there)
        assert found["stopped"] is None
        moving = found["moving"]
        assert moving is not None
        assert (moving.way, moving.node) == (TakeoverWay.GOES_ON, N2)
        assert moving.timings.takeover is not None
        assert moving.timings.takeover.total_ms == 150
    assert there.opened == 1
    world.kafka.append(events_topic(US), None, encode(replace(TAKEN, parts_ms=(("claimed", 9),))))
    world.clock.sleep(EVERY_S)
    later = found_of(search, there)["moving"]
    assert later is not None
    assert later.timings.takeover is not None
    assert later.timings.takeover.total_ms == 9


def test_without_secondaries_kafka_is_not_asked(there: Counting, world: World) -> None:
    """Nothing stands by."""
    search = TakeoverSearch(cast("Connections", there), world.clock)
    assert found_of(search, there) == {"moving": None, "stopped": None}
    assert there.opened == 0


def test_a_kafka_that_does_not_answer_leaves_what_the_catalog_says(
    there: Counting, world: World
) -> None:
    """The problem is told."""
    followed(world)
    there.fails = True
    search = TakeoverSearch(cast("Connections", there), world.clock)
    moving = found_of(search, there)["moving"]
    assert moving == TakeoverNow(TakeoverWay.GOES_ON, N2)
    assert str(search.problem) == "no answer"


def test_what_was_measured_of_a_network(there: Counting, world: World) -> None:
    """Of fragments without secondaries, too; also if nothing was logged yet."""
    stateful = {FragmentName("moving"): False}
    found = measured_of(CARS, stateful, cast("Connections", there))
    moving = found[FragmentName("moving")]
    assert moving.takeover.way is TakeoverWay.STARTS
    assert moving.takeover.timings.takeover is not None
    assert moving.reliability == UPSTREAM_BACKUP
    assert found[FragmentName("stopped")].takeover == TakeoverNow(TakeoverWay.BUILDS)
    world.kafka.delete_topics((events_topic(US),))
    found = measured_of(CARS, stateful, cast("Connections", there))
    assert found[FragmentName("moving")].takeover == TakeoverNow(TakeoverWay.STARTS)
