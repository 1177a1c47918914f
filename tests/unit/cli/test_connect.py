import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import ExitCode
from pipeline.ids import TopicName
from tests.unit.cli.twins import opener
from tests.unit.deploy.twins import World

Caller = Callable[..., Any]
SOURCE = """\
connector: incoming
source: {kind: files, folder: in, pattern: "*.csv", format: csv, settled: 0s}
topic: cars
key: car
"""
SINK = """\
connector: outgoing
sink: {kind: files, folder: out, format: jsonl}
topic: cars
"""


@pytest.fixture
def world(medusa: Caller) -> World:
    """An installation with a topic, and a folder with a file of three lines."""
    del medusa
    found = World.new()
    found.kafka.add(TopicName("cars"), 1)
    Path("in").mkdir()
    Path("in/a.csv").write_text("car,speed\na,1.5\nb,2\nc,3,4\n")
    Path("in.yaml").write_text(SOURCE)
    Path("out.yaml").write_text(SINK)
    return found


def test_kinds_are_listed(medusa: Caller) -> None:
    """With direction and guarantee."""
    found = {one["name"]: one for one in medusa("connect", "list", "-o", "json").data["connectors"]}
    assert found["postgresql"]["direction"] == "sink"
    files = found["files"]
    assert files["direction"] == "source and sink"
    assert files["guarantee"] == "exactly once"
    assert "files" in medusa("connect", "list").out


def test_a_source_is_shown_with_an_inferred_schema(medusa: Caller, world: World) -> None:
    """Without any server; `--schema` prints the schema alone."""
    del world
    found = medusa("connect", "show", "in.yaml", "-o", "json").data
    assert found["inferred"] is True
    assert found["records"] == [{"car": "a", "speed": "1.5"}, {"car": "b", "speed": "2"}]
    assert [one["reason"] for one in found["refused"]] == ["columns"]
    alone = json.loads(medusa("connect", "show", "in.yaml", "--schema").out)
    assert alone == found["schema"]
    assert alone["fields"] == [
        {"name": "car", "type": "string"},
        {"name": "speed", "type": "double"},
    ]
    assert "exactly once" in medusa("connect", "show", "in.yaml").out
    assert "topic cars → files" in medusa("connect", "show", "out.yaml").out


def test_a_file_goes_through_a_topic_into_a_file(medusa: Caller, world: World) -> None:
    """Once, however often both are run."""
    schema = medusa("connect", "show", "in.yaml", "--schema").out
    Path("car.avsc").write_text(schema)
    refused = medusa("connect", "run", "in.yaml", "--until-end", opener=opener(world))
    assert refused.code == ExitCode.BAD_INPUT
    assert "has no schema" in refused.err
    Path("in.yaml").write_text(SOURCE + "schema: car.avsc\n")
    call = ("connect", "run", "in.yaml", "--until-end", "-o", "json")
    first = medusa(*call, opener=opener(world))
    assert first.code == ExitCode.DONE, first.err
    assert (first.data["records"], first.data["refused"]) == (2, 1)
    assert medusa(*call, opener=opener(world)).data["records"] == 0
    out = ("connect", "run", "out.yaml", "--until-end", "-o", "json")
    assert medusa(*out, opener=opener(world)).data["records"] == 2
    assert medusa(*out, opener=opener(world)).data["records"] == 0
    (path,) = Path("out").glob("part-*")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows == [{"car": "a", "speed": 1.5}, {"car": "b", "speed": 2.0}]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- a", "keys and values"),
        ("{", "no YAML"),
        ("connector: a\ntopic: t", "either a source or a sink"),
        (SINK + "colour: red", "no such key"),
        (SINK + "key: car", "only a source has this"),
        (SINK.replace("outgoing", "Out.Going"), "a name has"),
        (SINK.replace("files", "tapes"), "there is no sink tapes"),
        (SINK + "round: {records: 0}", "no number above 0"),
        (SINK + "rate: 3", "this has records and bytes"),
        (SOURCE + "schema: missing.avsc", "cannot be read"),
        (SOURCE.replace("topic: cars\n", ""), "a text is missing"),
    ],
)
def test_a_wrong_document_is_named(medusa: Caller, text: str, says: str) -> None:
    """With its place."""
    Path("c.yaml").write_text(text)
    called = medusa("connect", "show", "c.yaml")
    assert called.code == ExitCode.BAD_INPUT
    assert says in called.err


def test_a_topic_that_is_missing_is_named(medusa: Caller, world: World) -> None:
    """Nothing is created silently."""
    Path("out.yaml").write_text(SINK.replace("cars", "boats"))
    called = medusa("connect", "run", "out.yaml", opener=opener(world))
    assert called.code == ExitCode.BAD_INPUT
    assert "there is no topic boats" in called.err
