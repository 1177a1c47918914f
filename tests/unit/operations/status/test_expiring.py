"""Expiring records in the status of fragments without a lane."""

from dataclasses import replace
from typing import Any, cast

import pytest

from brokers.kafka_interface import TopicAdmin
from brokers.log_reader import LogReader
from pipeline.errors import UnavailableError
from pipeline.lanes.expiring import Cause, ExpiringRecords
from pipeline.operations.connections import Connections
from pipeline.operations.status.expiring import EVERY_S, ExpiringSearch
from pipeline.operations.status.fragments import fragments_status
from pipeline.operations.status.observed import ObservedFragment
from tests.unit.deploy.twins import World
from tests.unit.operations.twins import TwinConnections, TwinRecomputer

DAY_S = 86_400


class Flaky(TwinConnections):
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
def flaky(world: World) -> Flaky:
    """The fragment `moving` has five unread records, which are four days old."""
    world.kafka.fill("car-sightings", 8)
    world.clock.sleep(4 * DAY_S)
    return Flaky(world, TwinRecomputer())


def seen(flaky: Flaky) -> tuple[ObservedFragment, ...]:
    """The fragments; no node is up."""
    return fragments_status(None, cast("Connections", flaky))


def causes(found: tuple[ObservedFragment, ...]) -> dict[str, Any]:
    """The causes by fragment."""

    def of(expiring: tuple[ExpiringRecords, ...] | None) -> list[Cause] | None:
        return None if expiring is None else [one.cause for one in expiring]

    return {str(one.record.fragment): of(one.expiring) for one in found}


def test_kafka_is_asked_once_a_minute(flaky: Flaky, world: World) -> None:
    """However often the status is shown; a fragment that never ran needs nothing."""
    search = ExpiringSearch(cast("Connections", flaky), world.clock)
    for _ in range(2):
        found = search.of(seen(flaky))
        assert causes(found) == {"moving": [Cause.AGE], "stopped": []}
    assert (flaky.opened, search.problem) == (1, None)
    world.clock.sleep(EVERY_S)
    search.of(seen(flaky))
    assert flaky.opened == 2


def test_a_kafka_that_does_not_answer_changes_nothing(flaky: Flaky, world: World) -> None:
    """The last answers stay; before the first, it is not known."""
    search = ExpiringSearch(cast("Connections", flaky), world.clock)
    flaky.fails = True
    assert causes(search.of(seen(flaky))) == {"moving": None, "stopped": None}
    assert isinstance(search.problem, UnavailableError)
    flaky.fails = False
    world.clock.sleep(EVERY_S)
    assert causes(search.of(seen(flaky)))["moving"] == [Cause.AGE]
    assert search.problem is None
    flaky.fails = True
    world.clock.sleep(EVERY_S)
    assert causes(search.of(seen(flaky)))["moving"] == [Cause.AGE]
    assert search.problem is not None


def test_kafka_is_not_asked_about_fragments_with_a_report(flaky: Flaky, world: World) -> None:
    """So the status of a network that runs needs no Kafka."""
    search = ExpiringSearch(cast("Connections", flaky), world.clock)
    reported = tuple(replace(one, expiring=()) for one in seen(flaky))
    assert search.of(reported) == reported
    assert flaky.opened == 0
