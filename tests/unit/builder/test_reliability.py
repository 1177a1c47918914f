"""`reliability` in Python: the document of the calls, and its mistakes."""

from pipeline.builder import NetworkBuilder, Reliability, boxes
from tests.unit.builder.test_mistakes import line, problems
from tests.unit.builder.test_round_trip import SCHEMAS, loaded


def test_the_network_boxes_and_outputs_have_it_as_in_the_document() -> None:
    """Short and long; the network that is built is that of the text."""
    network = NetworkBuilder("n", reliability="active_standby")
    s = network.stream("s", topic="t", schema="sighting.avsc", event_time="seen_at")
    two = Reliability(mode="active_standby", secondaries=2)
    routed = boxes.route("r", s, to={"x": "speed > 0"}, otherwise="y")
    once = boxes.deduplicate("once", routed["y"], by=["car"], within="1s", reliability=two)
    network.output(once, topic="once")
    network.output(routed["x"], topic="x", reliability=Reliability(mode="upstream_backup"))
    text = network.yaml()
    assert "reliability: active_standby\nstreams:" in text
    assert "reliability: {mode: active_standby, secondaries: 2}" in text
    assert "x: {topic: x, reliability: {mode: upstream_backup}}" in text
    assert network.build(SCHEMAS) == loaded(text)


def test_a_mistake_is_reported_at_its_call() -> None:
    """As in YAML."""
    made = NetworkBuilder("n")
    s = made.stream("s", topic="t", schema="sighting.avsc", event_time="seen_at")
    wrong = Reliability(mode="upstream_backup", secondaries=2)
    boxes.filter("b", s, where="true", reliability=wrong)
    (problem,) = problems(made)
    assert problem.line == line(-2)
    assert problem.message == "reliability of box b: upstream_backup has no secondaries"
