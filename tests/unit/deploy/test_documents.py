from pathlib import Path

import pytest

from pipeline.catalog.codec import decode, encode
from pipeline.catalog.records import NetworkVersionRecord
from pipeline.deploy import functions
from pipeline.deploy.documents import deployed_document, read_document, replan
from pipeline.errors import DocumentError, InputError
from pipeline.ids import NetworkId, NetworkName, NetworkVersion, ParticipantId
from pipeline.planner import planner
from pipeline.planner.digest import plan_digest
from tests.unit.deploy.twins import DOCUMENT, NOW, SCHEMA, write_project


def _nothing(_subject: str) -> str | None:
    return None


def test_the_error_for_a_missing_document_suggests_init(tmp_path: Path) -> None:
    """The error names the file and `medusa init`."""
    with pytest.raises(InputError) as caught:
        read_document(tmp_path / "network.yaml", _nothing)
    assert "network.yaml" in caught.value.place
    assert "medusa init" in caught.value.hint


def test_a_missing_schema_file_names_those_that_exist(tmp_path: Path) -> None:
    """The message contains the file, the line, and the schema files nearby."""
    path = write_project(tmp_path, DOCUMENT.replace("sighting.avsc", "sightings.avsc"))
    with pytest.raises(DocumentError) as caught:
        read_document(path, _nothing)
    problem = caught.value.problems[0]
    assert "sightings.avsc cannot be read" in problem.message
    assert problem.line == 3
    assert problem.choices == ("sighting.avsc",)


def test_a_schema_that_does_not_parse_names_the_path_inside(tmp_path: Path) -> None:
    """An Avro error is one of the document's problems, with its path in the schema."""
    path = write_project(tmp_path, schema=SCHEMA.replace('"double"', '"dubble"'))
    with pytest.raises(DocumentError) as caught:
        read_document(path, _nothing)
    assert "dubble" in str(caught.value)
    assert "sighting.avsc" in str(caught.value)


def test_an_unknown_subject_is_a_problem_of_the_document(tmp_path: Path) -> None:
    """The registry does not contain it; the hint names the command that registers one."""
    path = write_project(tmp_path, DOCUMENT.replace("schema: sighting.avsc", "subject: nobody"))
    with pytest.raises(DocumentError) as caught:
        read_document(path, _nothing)
    assert "the registry has no subject nobody" in str(caught.value)


def test_a_binary_file_is_rejected(tmp_path: Path) -> None:
    """The message names the encoding."""
    path = tmp_path / "network.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        read_document(path, _nothing)


def test_a_deployed_version_is_planned_again_without_files(tmp_path: Path) -> None:
    """The catalog's record produces the same plan."""
    document = read_document(write_project(tmp_path), _nothing)
    owner = ParticipantId("us")
    plan = planner.plan(document.network, owner)
    record = NetworkVersionRecord(
        network=NetworkId(owner, NetworkName("cars")),
        version=NetworkVersion(1),
        document=document.text,
        schemas=tuple(document.schemas.items()),
        digest=plan_digest(plan),
        deployed_at_ms=NOW,
        code=(),
    )
    assert replan(record) == plan


RATED = """
  rated: {python: sightings, function: code/rating.py:rate, columns: {car: STRING}}
outputs:"""
RATING = """
import pyarrow as pa

def rate(batch):
    return batch.select(["car"])
"""


def write_rating(folder: Path, text: str) -> Path:
    """Write the project with a Python box; returns its document."""
    path = write_project(folder, DOCUMENT.replace("\noutputs:", RATED))
    (folder / "code").mkdir()
    (folder / "code" / "rating.py").write_text(text)
    return path


def test_the_text_of_a_function_is_deployed_with_the_document(tmp_path: Path) -> None:
    """The catalog's record produces the same plan when the file is deleted."""
    document = read_document(write_rating(tmp_path, RATING), _nothing)
    assert document.code == {"rated": RATING}
    owner = ParticipantId("us")
    plan = planner.plan(document.network, owner)
    record = NetworkVersionRecord(
        network=NetworkId(owner, NetworkName("cars")),
        version=NetworkVersion(1),
        document=document.text,
        schemas=tuple(document.schemas.items()),
        digest=plan_digest(plan),
        deployed_at_ms=NOW,
        code=tuple(document.code.items()),
    )
    (tmp_path / "code" / "rating.py").unlink()
    stored = decode(NetworkVersionRecord, encode(record), "/x")
    assert deployed_document(stored).code == document.code
    assert replan(stored) == plan


def test_a_byte_order_mark_of_a_python_file_is_ignored(tmp_path: Path) -> None:
    """Some editors write one; Python ignores it, too."""
    path = write_rating(tmp_path, RATING)
    file = tmp_path / "code" / "rating.py"
    whole = read_document(path, _nothing).code
    file.write_text(file.read_text(), encoding="utf-8-sig")
    assert read_document(path, _nothing).code == whole


def test_a_missing_python_file_names_those_that_exist(tmp_path: Path) -> None:
    """The message contains the line, and the files nearby."""
    path = write_rating(tmp_path, RATING)
    (tmp_path / "code" / "rating.py").rename(tmp_path / "code" / "ratings.py")
    with pytest.raises(DocumentError) as caught:
        read_document(path, _nothing)
    (problem,) = caught.value.problems
    assert "code/rating.py cannot be read: No such file" in problem.message
    assert problem.choices == ("code/ratings.py",)
    assert problem.box == "rated"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "import no_such_thing",
            "code/rating.py:rate cannot be loaded: ModuleNotFoundError: No module named",
            "what it imports has to be installed",
        ),
        (
            "def rate(): ...",
            "cannot be loaded: TypeError: rate has to take one argument, the record batch",
            "",
        ),
        (
            "def rate(batch):\n    return batch",
            "called with a batch without rows: it returned a column ",
            "it has to return car STRING",
        ),
        (
            "def rate(batch):\n    return batch.column('cat')",
            "called with a batch without rows: KeyError: ",
            "it has to return car STRING",
        ),
    ],
)
def test_a_function_is_tried_before_anything_is_deployed(
    tmp_path: Path, text: str, message: str, hint: str
) -> None:
    """An error in it is a problem of the document, with its line."""
    path = write_rating(tmp_path, text)
    with pytest.raises(DocumentError) as caught:
        read_document(path, _nothing)
    (problem,) = caught.value.problems
    line = path.read_text().splitlines().index(RATED.splitlines()[1]) + 1
    assert (problem.file, problem.line, problem.box) == (str(path), line, "rated")
    assert message in problem.message
    assert hint in problem.hint


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("no_such_module:rate", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("json:rate", "AttributeError: there is no rate in json"),
        ("json:dumps", "called with a batch without rows: TypeError: "),
    ],
)
def test_a_problem_of_a_function_in_a_module_has_the_documents_line(
    tmp_path: Path, named: str, message: str
) -> None:
    """The document has no file of it, but a line that names it."""
    box = RATED.replace("code/rating.py:rate", named)
    path = write_project(tmp_path, DOCUMENT.replace("\noutputs:", box))
    with pytest.raises(DocumentError) as caught:
        read_document(path, _nothing)
    (problem,) = caught.value.problems
    line = path.read_text().splitlines().index(box.splitlines()[1]) + 1
    assert (problem.file, problem.line, problem.box) == (str(path), line, "rated")
    assert message in problem.message


def test_a_trial_call_has_a_minimum_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A box's shorter timeout is for rows, in a running process."""
    slow = "import time\ndef rate(batch):\n    time.sleep(0.4)\n    return batch.select(['car'])"
    path = write_rating(tmp_path, slow)
    path.write_text(path.read_text().replace("{car: STRING}", "{car: STRING}, timeout: 100ms"))
    assert read_document(path, _nothing).code == {"rated": slow}
    monkeypatch.setattr(functions, "TRIAL_MIN_MS", 200)
    with pytest.raises(DocumentError, match="without rows: it did not return within 200ms"):
        read_document(path, _nothing)
