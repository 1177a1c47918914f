"""`priority` in Python: the document of the calls, and its mistakes."""

from typing import Any

from pipeline.builder import NetworkBuilder, boxes
from tests.unit.builder.test_mistakes import line, problems
from tests.unit.builder.test_round_trip import SCHEMAS, loaded


def test_the_network_boxes_and_outputs_have_it_as_in_the_document() -> None:
    """The network that is built is that of the text."""
    network = NetworkBuilder("n", priority="low")
    s = network.stream("s", topic="t", schema="sighting.avsc", event_time="seen_at")
    fast = boxes.filter("fast", s, where="speed > 0", priority="high")
    slow = boxes.filter("slow", s, where="speed < 1")
    network.output(fast, topic="fast")
    network.output(slow, topic="slow", priority="normal")
    text = network.yaml()
    assert "priority: low\nstreams:" in text
    assert "priority: high" in text
    assert "slow: {topic: slow, priority: normal}" in text
    assert network.build(SCHEMAS) == loaded(text)


def test_a_mistake_is_reported_at_its_call() -> None:
    """As in YAML."""
    made = NetworkBuilder("n")
    s = made.stream("s", topic="t", schema="sighting.avsc", event_time="seen_at")
    wrong: Any = "urgent"
    boxes.filter("b", s, where="true", priority=wrong)
    (problem,) = problems(made)
    assert problem.line == line(-2)
    assert problem.message.startswith("priority of box b cannot be 'urgent'")
