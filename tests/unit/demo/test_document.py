from importlib import resources
from pathlib import Path

import pytest

from pipeline.demo.document import rules_of, with_short_windows
from pipeline.deploy.documents import read_document
from pipeline.errors import BrokenInvariantError
from pipeline.network.model import Network
from pipeline.reference.tolls import Rules

PROJECT = Path(str(resources.files("pipeline.projects") / "tolls"))


def load(folder: Path, text: str) -> Network:
    """A document beside the project's schemas."""
    (folder / "schemas").mkdir()
    schema = (PROJECT / "schemas" / "sighting.avsc").read_text(encoding="utf-8")
    (folder / "schemas" / "sighting.avsc").write_text(schema, encoding="utf-8")
    (folder / "network.yaml").write_text(text, encoding="utf-8")
    return read_document(folder / "network.yaml", lambda _: None).network


def toll_document() -> str:
    """The document that `medusa init tolls` writes."""
    return (PROJECT / "network.yaml").read_text(encoding="utf-8")


def test_the_projects_own_document_has_windows_of_a_minute(tmp_path: Path) -> None:
    """The reference's times are read from the checked network, bounds included."""
    rules = rules_of(load(tmp_path, toll_document()))
    assert rules == Rules(window_ms=60_000, valid_ms=60_000, reach_ms=300_000)


def test_the_demo_shortens_the_windows_and_what_follows_from_them(tmp_path: Path) -> None:
    """One line of the document decides the window and how long its toll holds."""
    rules = rules_of(load(tmp_path, with_short_windows(toll_document())))
    assert rules == Rules(window_ms=10_000, valid_ms=10_000, reach_ms=300_000)


def test_a_document_without_its_window_line_is_not_guessed_at() -> None:
    """If the project's document changes, the demo fails instead of running something else."""
    with pytest.raises(BrokenInvariantError, match="sets its window 0 times"):
        with_short_windows("network: tolls\n")


def test_another_network_has_no_reference(tmp_path: Path) -> None:
    """Rules come only from a network with the toll network's boxes."""
    document = toll_document().replace("tow_dispatch", "dispatch")
    with pytest.raises(BrokenInvariantError, match="not the one the reference knows"):
        rules_of(load(tmp_path, document))
