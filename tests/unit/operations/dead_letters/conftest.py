"""A fragment with dead letters."""

import pytest

from pipeline.ids import Millis
from pipeline.operations.connections import Connections
from pipeline.operations.fragments import fragment_of
from pipeline.planner.plan import Fragment
from tests.unit.dead_letters.support import NOW, record
from tests.unit.deploy.twins import World


@pytest.fixture
def world(world: World) -> World:
    """Three dead letters of cars.moving, of which the second was late."""
    late = record(1, reason="late", event_time_ms=NOW, closed_ms=NOW, appended=Millis(NOW + 1))
    world.put(record(0), late, record(2, appended=Millis(NOW + 2)))
    return world


@pytest.fixture
def moving(connections: Connections) -> Fragment:
    """The fragment."""
    return fragment_of("cars.moving", connections)
