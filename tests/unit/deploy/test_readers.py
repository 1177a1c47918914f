"""Which deployed boxes a schema would break."""

import json
from pathlib import Path

import pytest

from pipeline.deploy.documents import read_document
from pipeline.deploy.readers import BreaksBoxesError, broken_by
from pipeline.ids import ParticipantId
from pipeline.planner.plan import Plan
from pipeline.planner.planner import plan
from tests.unit.deploy.twins import SCHEMA, write_project

DOCUMENT = """
network: cars
streams:
  sightings: {topic: car-sightings, schema: sighting.avsc, event_time: seen_at}
boxes:
  moving: {filter: sightings, where: speed > 0}
  fast: {map: moving, select: {fast: speed > 100}}
  plates: {map: sightings, select: {plate: car}}
outputs:
  fast: {topic: fast-cars}
  plates: {topic: plates-of-cars}
"""
VALUE = "car-sightings-value"


@pytest.fixture
def planned(tmp_path: Path) -> Plan:
    """Two fragments: one reads the speed, the other the plate, both the time."""
    document = read_document(write_project(tmp_path, DOCUMENT), lambda _: None)
    return plan(document.network, ParticipantId("local"))


def changed(**types: object) -> str:
    """The schema of the sightings with other types; None: without that field."""
    schema = json.loads(SCHEMA)
    fields = [{**f, "type": types.get(f["name"], f["type"])} for f in schema["fields"]]
    schema["fields"] = [f for f in fields if f["type"] is not None]
    return json.dumps(schema)


def test_a_box_is_named_with_the_path_and_both_types(planned: Plan) -> None:
    """Only those that read the column; by their names in the document."""
    (broken,) = broken_by(VALUE, changed(speed="string"), [planned])
    assert (str(broken.network), broken.fragment, broken.box) == ("cars", "fast", "moving")
    assert str(broken) == (
        "local.cars.moving: stream sightings, /fields/speed/type: the reader's double cannot read "
        "the writer's string (TYPE_MISMATCH)"
    )
    assert [b.box for b in broken_by(VALUE, changed(car=None), [planned])] == ["plates"]


def test_what_every_box_needs_breaks_every_box(planned: Plan) -> None:
    """The column of the event time, and the record itself; also where bytes mean something else."""
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    found = broken_by(VALUE, changed(seen_at=micros), [planned])
    assert [one.box for one in found] == ["moving", "plates"]
    assert "timestamp-millis" in found[0].reason
    assert {b.box for b in broken_by(VALUE, '"string"', [planned])} == {"moving", "plates"}


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        (VALUE, changed(speed="float")),
        (VALUE, changed(speed="int")),
        ("car-sightings-key", '"int"'),
        ("other-value", '"int"'),
    ],
)
def test_what_can_still_be_read_breaks_nothing(planned: Plan, subject: str, text: str) -> None:
    """Nor do subjects that no deployed box reads."""
    assert broken_by(subject, text, [planned]) == ()


def test_a_column_that_nobody_reads_is_no_reason(tmp_path: Path) -> None:
    """Lanes pass over it."""
    document = DOCUMENT.replace("  plates: {map: sightings, select: {plate: car}}\n", "")
    document = document.replace("  plates: {topic: plates-of-cars}\n", "")
    read = read_document(write_project(tmp_path, document), lambda _: None)
    planned = plan(read.network, ParticipantId("local"))
    assert broken_by(VALUE, changed(car=None), [planned]) == ()
    assert broken_by(VALUE, changed(speed=None), [planned]) != ()


def test_the_readers_of_a_derived_stream_are_named_too(tmp_path: Path) -> None:
    """Whoever registers a schema there wants to write there."""
    document = DOCUMENT.replace("outputs:\n", "outputs:\n  moving: {topic: moving-cars}\n")
    read = read_document(write_project(tmp_path, document), lambda _: None)
    planned = plan(read.network, ParticipantId("local"))
    found = broken_by("moving-cars-value", changed(speed="string"), [planned])
    assert any("cars.fast: stream moving, /fields/speed" in str(one) for one in found)


def test_the_error_lists_them_line_by_line(planned: Plan) -> None:
    """And says what can be done."""
    error = BreaksBoxesError(VALUE, broken_by(VALUE, changed(speed="string"), [planned]))
    head, line, hint = str(error).splitlines()
    assert head == (
        "subject car-sightings-value: deployed boxes could not read what is written with this "
        "schema"
    )
    assert line.startswith("    - local.cars.moving: stream sightings, /fields/speed/type")
    assert "--yes" in hint
    assert error.exit_code == 65
