from pathlib import Path

import pytest

from pipeline.catalog.records import NetworkVersionRecord
from pipeline.deploy.documents import read_document, replan
from pipeline.errors import DocumentError, InputError
from pipeline.ids import NetworkName, NetworkVersion, ParticipantId
from pipeline.planner import planner
from pipeline.planner.digest import plan_digest
from tests.unit.deploy.twins import DOCUMENT, NOW, SCHEMA, write_project


def _nothing(_subject: str) -> str | None:
    return None


def test_a_missing_document_says_how_to_begin(tmp_path: Path) -> None:
    """The error names the file and `medusa init`."""
    with pytest.raises(InputError) as caught:
        read_document(tmp_path / "network.yaml", _nothing)
    assert "network.yaml" in caught.value.place
    assert "medusa init" in caught.value.hint


def test_a_missing_schema_file_names_those_that_exist(tmp_path: Path) -> None:
    """The message has the file, the line, and the schema files nearby."""
    path = write_project(tmp_path, DOCUMENT.replace("sighting.avsc", "sightings.avsc"))
    with pytest.raises(DocumentError) as caught:
        read_document(path, _nothing)
    problem = caught.value.problems[0]
    assert "sightings.avsc cannot be read" in problem.message
    assert problem.line == 3
    assert problem.choices == ("sighting.avsc",)


def test_a_schema_that_does_not_parse_names_the_path_inside(tmp_path: Path) -> None:
    """An Avro mistake is told with its place in the schema, among the document's problems."""
    path = write_project(tmp_path, schema=SCHEMA.replace('"double"', '"dubble"'))
    with pytest.raises(DocumentError) as caught:
        read_document(path, _nothing)
    assert "dubble" in str(caught.value)
    assert "sighting.avsc" in str(caught.value)


def test_an_unknown_subject_is_a_problem_of_the_document(tmp_path: Path) -> None:
    """The registry was asked and has none: the message says how to register one."""
    path = write_project(tmp_path, DOCUMENT.replace("schema: sighting.avsc", "subject: nobody"))
    with pytest.raises(DocumentError) as caught:
        read_document(path, _nothing)
    assert "the registry has no subject nobody" in str(caught.value)


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    """A binary file is not a document."""
    path = tmp_path / "network.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        read_document(path, _nothing)


def test_a_deployed_version_is_planned_again_without_files(tmp_path: Path) -> None:
    """The catalog's record gives the very plan that was deployed."""
    document = read_document(write_project(tmp_path), _nothing)
    owner = ParticipantId("us")
    plan = planner.plan(document.network, owner)
    record = NetworkVersionRecord(
        network=NetworkName("cars"),
        version=NetworkVersion(1),
        document=document.text,
        schemas=tuple(document.schemas.items()),
        digest=plan_digest(plan),
        deployed_at_ms=NOW,
    )
    assert replan(record, owner) == plan
