import pytest

from pipeline.errors import InputError
from pipeline.ids import TopicName
from pipeline.operations.connections import Connections
from pipeline.operations.records.decoding import decode_record
from pipeline.operations.records.encoding import BadLine, EncodedLine, encode_lines
from pipeline.operations.records.produce import line_encoding, send_lines
from schemas.json_value import object_of
from tests.unit.deploy.twins import World

TOPIC = TopicName("car-sightings")
LINE = b'{"car":"a","speed":1.5,"seen_at":"2026-01-01T00:00:00Z"}'


def test_lines_become_records_in_the_schema_of_the_topic(
    world: World, connections: Connections
) -> None:
    """Blank lines are skipped; a bad line has its number and the place inside it."""
    encoding = line_encoding(TOPIC, "car", connections)
    found = list(encode_lines([LINE, b"\n", b'{"car":"a","speed":"x"}'], encoding))
    good = [one for one in found if isinstance(one, EncodedLine)]
    (bad,) = (one for one in found if isinstance(one, BadLine))
    assert (len(good), bad.line) == (1, 3)
    assert send_lines(TOPIC, good, connections) == 1
    (sent,) = world.records(TOPIC)
    shown = decode_record(sent, connections.registry)
    assert (shown.key, object_of(shown.value)["speed"], shown.problem) == ("a", 1.5, "")


def test_a_key_is_a_field_of_the_schema(connections: Connections) -> None:
    """Otherwise the error lists the fields."""
    with pytest.raises(InputError, match="has no field driver") as refused:
        line_encoding(TOPIC, "driver", connections)
    assert refused.value.hint == "there is: car, speed, seen_at."
