"""The jobs of the benchmark of moves."""

import json
from pathlib import Path

import pytest

from benchmarks import moves
from benchmarks.moves import JOBS, JOIN, WIDE_JOIN
from benchmarks.readings import READING_JSON
from pipeline.deploy.documents import read_document
from pipeline.ids import ParticipantId
from pipeline.planner.planner import plan


@pytest.mark.parametrize("document", [JOIN, WIDE_JOIN], ids=["join", "wide"])
def test_a_join_is_one_fragment_with_state(document: str, tmp_path: Path) -> None:
    """Whose network, fragment and topic are those that are measured."""
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "reading.avsc").write_text(READING_JSON)
    (tmp_path / "join.yaml").write_text(document)
    found = plan(read_document(tmp_path / "join.yaml", lambda _: None).network, ParticipantId("us"))
    (fragment,) = found.fragments
    assert (found.network.name, fragment.name, fragment.output.topic) == JOBS["join"]
    assert fragment.stateful_box is not None
    assert json.loads(fragment.output.schema_json)["fields"]


def test_the_wide_join_keeps_the_text_of_both_sides() -> None:
    """Else the planner would leave it out of the state."""
    assert "text: left.text, other: right.text" in WIDE_JOIN
    assert "sha2" in WIDE_JOIN


@pytest.mark.parametrize("job", ["stateless", "window"])
def test_only_a_joins_state_is_filled(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says so before it starts anything."""
    with pytest.raises(SystemExit):
        moves.main(["--job", job, "--state", "100"])
    assert "only a join's state is filled" in capsys.readouterr().err
