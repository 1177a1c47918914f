from collections.abc import Callable

from pipeline.network.model import Network

LoadText = Callable[[str], Network]
ProblemsOf = Callable[[str], list[str]]

HEAD = """\
network: n
streams:
  s: {topic: car-sightings, schema: sighting.avsc, event_time: seen_at}
"""


def test_an_output_says_whether_its_readers_take_corrections(load_text: LoadText) -> None:
    """None does unless it is written."""
    boxes = "boxes: {b: {filter: s, where: speed > 0}, c: {filter: s, where: speed > 1}}\n"
    outputs = "outputs: {b: {topic: x, corrections: true}, c: {topic: y}}\n"
    found = {o.stream: o.corrections for o in load_text(HEAD + boxes + outputs).outputs}
    assert found == {"b": True, "c": False}


def test_no_box_reads_what_may_be_corrected(problems_of: ProblemsOf) -> None:
    """It would count a correction as one more record."""
    boxes = "boxes: {b: {filter: s, where: speed > 0}, c: {filter: b, where: speed > 1}}\n"
    outputs = "outputs: {b: {topic: x, corrections: true}}\n"
    (problem,) = problems_of(HEAD + boxes + outputs)
    assert problem.startswith("network.yaml:5: output b may be corrected, but box c reads it")
    assert "copy the stream with a map" in problem


def test_an_output_says_how_long_its_topic_keeps_records(load_text: LoadText) -> None:
    """Where it says nothing, the network decides."""
    boxes = "boxes: {b: {filter: s, where: speed > 0}, c: {filter: s, where: speed > 1}}\n"
    outputs = "outputs: {b: {topic: x, retention: 1d}, c: {topic: y}}\n"
    found = {o.stream: o.retention_ms for o in load_text(HEAD + boxes + outputs).outputs}
    assert found == {"b": 86_400_000, "c": None}


def test_a_retention_has_a_least_value(problems_of: ProblemsOf) -> None:
    """As the network's has, and it is told of which output."""
    boxes = "boxes: {b: {filter: s, where: speed > 0}}\n"
    outputs = "outputs: {b: {topic: x, retention: 5s}}\n"
    (problem,) = problems_of(HEAD + boxes + outputs)
    assert problem == "network.yaml:5: retention of output b must be at least 1m"
