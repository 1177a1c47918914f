import pytest

from pipeline.errors import RefusedError, SchemaError
from pipeline.ids import TopicName
from pipeline.operations.connections import Connections
from pipeline.operations.streams import newest_schema, topic_of, writers_of
from tests.unit.deploy.twins import World

INPUT, OUTPUT = TopicName("car-sightings"), TopicName("moving-cars")


@pytest.mark.parametrize("name", ["sightings", "cars.sightings", "car-sightings"])
def test_a_stream_has_several_names(connections: Connections, name: str) -> None:
    """Its name in the document, with or without its network, and that of its topic."""
    assert topic_of(name, connections) == INPUT


def test_any_topic_is_a_stream(connections: Connections, world: World) -> None:
    """Also one of no network; for other names, the error lists the streams."""
    world.kafka.add("others")
    assert topic_of("others", connections) == TopicName("others")
    with pytest.raises(RefusedError, match="no stream or topic movin") as missing:
        topic_of("movin", connections)
    assert missing.value.hint.startswith("there is: moving")


def test_the_writers_and_the_schema_of_a_topic(connections: Connections, world: World) -> None:
    """No fragment writes an input; a topic without schema is an error."""
    assert writers_of(OUTPUT, connections) == ("cars.moving",)
    assert writers_of(INPUT, connections) == ()
    assert newest_schema(INPUT, connections).subject == "car-sightings-value"
    world.kafka.add("others")
    with pytest.raises(SchemaError, match="topic others has no registered schema"):
        newest_schema(TopicName("others"), connections)
