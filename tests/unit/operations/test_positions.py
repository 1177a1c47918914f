"""The last commit marker of a fragment, as the deployed version takes it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pipeline.ids import TopicName
from pipeline.names import value_subject
from pipeline.operations.positions import present_marker
from pipeline.planner.inputs import InputFrom
from schemas.compatibility import Level
from tests.unit.deploy.test_inputs import FILTER, Scene

OUT = TopicName("moving-cars")
MOVING = f"{FILTER}outputs: {{moving: {{topic: {OUT}}}}}\n"
DRIVING = MOVING.replace("moving:", "driving:")
END = {"sightings": InputFrom.END}


def test_a_fragment_that_begins_anew_goes_on_from_nothing_that_it_has_read(tmp_path: Path) -> None:
    """Else its dead letters would be sent again to sources that its next lane does not have."""
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
