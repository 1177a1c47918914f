from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from brokers.records import KafkaRecord
from pipeline.errors import RefusedError
from pipeline.ids import Millis, Offset, TopicName
from pipeline.names import value_subject
from pipeline.operations.connections import Connections
from pipeline.operations.fragments import fragment_of
from pipeline.operations.positions import committed_positions, input_positions, present_marker
from pipeline.planner.inputs import InputFrom
from schemas.compatibility import Level
from tests.unit.deploy.test_inputs import FILTER, Scene
from tests.unit.deploy.twins import World

OUT = TopicName("moving-cars")
SIGHTINGS = TopicName("car-sightings")
MOVING = f"{FILTER}outputs: {{moving: {{topic: {OUT}}}}}\n"
DRIVING = MOVING.replace("moving:", "driving:")
END = {"sightings": InputFrom.END}


def test_a_fragment_that_begins_anew_has_no_present_marker(tmp_path: Path) -> None:
    """Else a redrive would send dead letters to sources that its next lane does not have."""
    scene = Scene(tmp_path)
    world = scene.world
    world.kafka.add("car-sightings", partitions=1, records=9)
    scene.deploy(MOVING)
    scene.read(MOVING, {"car-sightings": 5})
    world.kafka.fill(OUT, 4)
    world.registry.set_level(value_subject(OUT), Level.NONE)
    connections: Any = SimpleNamespace(
        catalog=world.catalog, servers=world.servers, topics=world.kafka
    )
    (fragment,) = scene.compare(MOVING).plan.fragments
    marker = present_marker(fragment, connections)
    assert marker is not None
    assert [source.name for source in marker.sources] == ["sightings"]
    scene.deploy(DRIVING, **END)
    scene.deploy(MOVING, **END)
    assert present_marker(fragment, connections) is None


def test_a_position_has_its_lag_and_the_time_of_its_next_record(
    world: World, connections: Connections
) -> None:
    """At the end of the partition there is no such time."""
    moving = fragment_of("cars.moving", connections)
    records = [KafkaRecord(SIGHTINGS, 0, Offset(n), Millis(n), None, b"") for n in range(5)]
    for new, next_ms, lag in ((records[:3], None, 0), (records[3:], 3, 2)):
        world.put(*new)
        one, *_ = input_positions(moving, connections)
        assert (one.topic, one.position, one.lag, one.next_ms) == (SIGHTINGS, 3, lag, next_ms)
    assert committed_positions(moving, connections) == {SIGHTINGS: {0: 3}}


def test_a_fragment_that_never_ran_has_no_position(connections: Connections) -> None:
    """Its lag is unknown, not zero."""
    stopped = fragment_of("cars.stopped", connections)
    found = input_positions(stopped, connections)
    assert {(one.position, one.lag) for one in found} == {(None, None)}
    with pytest.raises(RefusedError, match="has not run yet"):
        committed_positions(stopped, connections)
