"""A fragment that can be replayed."""

import pytest

from brokers.records import KafkaRecord
from pipeline.ids import Offset, TopicName
from pipeline.operations.connections import Connections
from pipeline.operations.replay.engine import ReplayEngine
from pipeline.operations.replay.fragment import replayed_fragment
from tests.unit.deploy.twins import NOW, World


@pytest.fixture
def world(world: World) -> World:
    """Three records of the input."""
    topic = TopicName("car-sightings")
    world.put(*(KafkaRecord(topic, 0, Offset(n), NOW, None, b"v") for n in range(3)))
    return world


@pytest.fixture
def reports() -> list[str]:
    """The lines that the engine reports."""
    return []


@pytest.fixture
def engine(connections: Connections, reports: list[str]) -> ReplayEngine:
    """The engine of the fragment `moving`."""
    return ReplayEngine(replayed_fragment("cars.moving", connections), connections, reports.append)
