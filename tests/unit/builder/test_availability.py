"""`availability` in Python: the document of the calls, and its mistakes."""

from datetime import timedelta
from typing import Any

from pipeline.builder import Availability, NetworkBuilder, boxes
from tests.unit.builder.test_mistakes import line, problems
from tests.unit.builder.test_round_trip import SCHEMAS, loaded


def test_the_network_boxes_and_outputs_have_it_as_in_the_document() -> None:
    """The network that is built is that of the text."""
    network = NetworkBuilder("n", availability="3s")
    s = network.stream("s", topic="t", schema="sighting.avsc", event_time="seen_at")
    bound = Availability(bound=timedelta(seconds=1), policy="delay")
    fast = boxes.filter("fast", s, where="speed > 0", availability=bound)
    slow = boxes.filter("slow", s, where="speed < 1")
    network.output(fast, topic="fast")
    network.output(slow, topic="slow", availability=Availability(bound="2s"))
    text = network.yaml()
    assert "availability: 3s\nstreams:" in text
    assert "bound: 1s, policy: delay" in text
    assert "slow: {topic: slow, availability: {bound: 2s}}" in text
    assert network.build(SCHEMAS) == loaded(text)


def test_a_mistake_is_reported_at_its_call() -> None:
    """As in YAML."""
    made = NetworkBuilder("n")
    s = made.stream("s", topic="t", schema="sighting.avsc", event_time="seen_at")
    wrong: Any = "later"
    boxes.filter("b", s, where="true", availability=Availability(bound="3s", policy=wrong))
    (problem,) = problems(made)
    assert problem.line == line(-2)
    assert problem.message.startswith("policy of availability of box b cannot be 'later'")
