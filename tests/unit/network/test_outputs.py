from collections.abc import Callable

import pytest

from pipeline.network.model import KeyFormat, Network

LoadText = Callable[[str], Network]
ProblemsOf = Callable[[str], list[str]]

HEAD = """\
network: n
streams:
  s: {topic: car-sightings, schema: sighting.avsc, event_time: seen_at}
"""


def test_an_output_defines_whether_its_readers_accept_corrections(load_text: LoadText) -> None:
    """The default is no."""
    boxes = "boxes: {b: {filter: s, where: speed > 0}, c: {filter: s, where: speed > 1}}\n"
    outputs = "outputs: {b: {topic: x, corrections: true}, c: {topic: y}}\n"
    found = {o.stream: o.corrections for o in load_text(HEAD + boxes + outputs).outputs}
    assert found == {"b": True, "c": False}


def test_no_box_reads_a_stream_with_corrections(problems_of: ProblemsOf) -> None:
    """It would count a correction as one more record."""
    boxes = "boxes: {b: {filter: s, where: speed > 0}, c: {filter: b, where: speed > 1}}\n"
    outputs = "outputs: {b: {topic: x, corrections: true}}\n"
    (problem,) = problems_of(HEAD + boxes + outputs)
    assert problem.startswith("network.yaml:5: output b may be corrected, but box c reads it")
    assert "copy the stream with a map" in problem


def test_an_output_may_define_the_retention_of_its_topic(load_text: LoadText) -> None:
    """The default is that of the network."""
    boxes = "boxes: {b: {filter: s, where: speed > 0}, c: {filter: s, where: speed > 1}}\n"
    outputs = "outputs: {b: {topic: x, retention: 1d}, c: {topic: y}}\n"
    found = {o.stream: o.retention_ms for o in load_text(HEAD + boxes + outputs).outputs}
    assert found == {"b": 86_400_000, "c": None}


def test_a_retention_has_a_minimum(problems_of: ProblemsOf) -> None:
    """As the network's has, and the message names the output."""
    boxes = "boxes: {b: {filter: s, where: speed > 0}}\n"
    outputs = "outputs: {b: {topic: x, retention: 5s}}\n"
    (problem,) = problems_of(HEAD + boxes + outputs)
    assert problem == "network.yaml:5: retention of output b must be at least 1m"


BOXES = """\
boxes:
  b: {filter: s, where: speed > 0%s}
  w: {aggregate: s, window: 1m, by: [road, segment], compute: {n: count(*)}}
  m: {map: s, select: {car: car, maybe: "nullif(car, 'x')"}, key: [maybe]}
"""


def test_an_output_defines_the_format_of_its_keys(load_text: LoadText) -> None:
    """The default is Avro."""
    outputs = "outputs: {b: {topic: x, key_format: string}, w: {topic: y}}\n"
    found = {
        o.stream: o.key_format for o in load_text(HEAD + BOXES % ", key: [car]" + outputs).outputs
    }
    assert found == {"b": KeyFormat.STRING, "w": KeyFormat.AVRO}


@pytest.mark.parametrize(
    ("key", "key_format"),
    [("car", "string"), ("segment", "string"), ("segment", "raw"), ("speed", "avro")],
)
def test_a_key_of_one_column_with_one_form_can_be_written(
    key: str, key_format: str, load_text: LoadText
) -> None:
    """As text, or as the bytes of a number."""
    outputs = f"outputs: {{b: {{topic: x, key_format: {key_format}}}}}\n"
    (output,) = load_text(HEAD + BOXES % f", key: [{key}]" + outputs).outputs
    assert output.key_format.value == key_format


@pytest.mark.parametrize(
    ("key", "output", "problem", "hint"),
    [
        (
            "",
            "b: {topic: x, key_format: raw}",
            "raw, which takes a key of one column, but box b has no key of its own",
            "write key: [COLUMN] at box b, or leave key_format out.",
        ),
        (
            "",
            "w: {topic: x, key_format: string}",
            "string, which takes a key of one column, but box w has the key (road, segment)",
            "write key: [COLUMN] at box w, or leave key_format out.",
        ),
        (
            ", key: [speed]",
            "b: {topic: x, key_format: string}",
            "string, but the key column speed is DOUBLE, not one of STRING, INT, BIGINT, BOOLEAN",
            "CAST it in a map box, or leave key_format out.",
        ),
        (
            ", key: [car]",
            "b: {topic: x, key_format: raw}",
            "raw, but the key column car is STRING, not one of BINARY, INT, BIGINT",
            "CAST it in a map box, or leave key_format out.",
        ),
        (
            "",
            "m: {topic: x, key_format: string}",
            "string, but the key column maybe can be null, and such a record would have no key",
            "write coalesce(maybe, …) in a map box, or leave key_format out.",
        ),
    ],
)
def test_other_keys_are_refused(
    key: str, output: str, problem: str, hint: str, problems_of: ProblemsOf
) -> None:
    """Each with the line of the output, the box, and the remedy."""
    (found,) = problems_of(HEAD + BOXES % key + f"outputs: {{{output}}}\n")
    expected = f"network.yaml:8: output {output[0]} has key_format {problem}"
    assert found == f"{expected}\n    hint: {hint}"


def test_an_unknown_format_is_reported_with_the_existing_ones(problems_of: ProblemsOf) -> None:
    """As for any other choice."""
    outputs = "outputs: {b: {topic: x, key_format: text}}\n"
    (found,) = problems_of(HEAD + BOXES % "" + outputs)
    assert "key_format of output b cannot be 'text' (there is: " in found
