import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pipeline
from tests.unit.deploy.test_python_files import CARS
from tests.unit.deploy.twins import SCHEMA, write_project

Caller = Callable[..., Any]
GOLDEN = Path(__file__).parents[2] / "data" / "show"
TOLLS = Path(pipeline.__file__).parent / "projects" / "tolls"


@pytest.mark.parametrize("language", ["text", "dot", "mermaid"])
@pytest.mark.parametrize("options", [[], ["--fragments"]])
def test_the_drawings_of_the_toll_network_equal_the_golden_files(
    medusa: Caller, language: str, options: list[str]
) -> None:
    """In all three languages, with and without the borders of fragments."""
    shutil.copytree(TOLLS, Path(), dirs_exist_ok=True)
    shown = medusa("show", "--format", language, *options)
    name = "-".join(["tolls", *(option.removeprefix("--") for option in options)])
    assert shown.out == (GOLDEN / f"{name}.{language}").read_text(encoding="utf-8")


def test_a_terminal_without_line_characters_gets_ascii(
    medusa: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the encoding of stdout."""
    write_project(Path())
    assert "●" in medusa("show").out
    screen = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(screen, encoding="ascii"))
    medusa("show")
    assert b"-> [moving-cars]" in screen.getvalue()


def test_data_with_fragments_contain_those_without(medusa: Caller) -> None:
    """For programs: the content of the document, and its fragments."""
    write_project(Path())
    plain = medusa("show", "-o", "json").data
    cut = medusa("show", "-o", "json", "--fragments").data
    fragments = cut.pop("fragments")
    assert cut == plain
    assert {f["output"]["topic"] for f in fragments} >= {"moving-cars"}


def test_a_drawing_cannot_be_data(medusa: Caller) -> None:
    """Both options together are refused, instead of ignoring one."""
    write_project(Path())
    refused = medusa("show", "-o", "json", "--format", "dot")
    assert refused.code == 64
    assert "leave one of them out" in refused.err


def test_a_python_file_is_shown_explained_and_found_by_default(medusa: Caller) -> None:
    """`network.py` is used if there is no `network.yaml`; with both, one must be named."""
    Path("sighting.avsc").write_text(SCHEMA)
    Path("network.py").write_text(CARS)
    assert "[moving-cars]" in medusa("show").out
    assert medusa("explain", "-f", "network.py").out.startswith("network cars of local: 1 fragment")
    write_project(Path())
    both = medusa("show")
    assert both.code == 65
    assert "there is network.yaml, and there is network.py" in both.err
    assert medusa("show", "-f", "network.yaml").code == 0


def test_explain_has_the_pace_and_the_state_limit_of_each_fragment(medusa: Caller) -> None:
    """In the data always, in the text when they are set."""
    Path("sighting.avsc").write_text(SCHEMA)
    Path("network.py").write_text(CARS)
    (plain,) = medusa("explain", "-o", "json").data["fragments"]
    assert (plain["pace_ms"], plain["state_limit_bytes"]) == (0, None)
    assert "least time between two batches" not in medusa("explain").out
    Path("network.py").write_text(CARS.replace('where="speed > 0"', 'where="speed > 0", pace="1s"'))
    (paced,) = medusa("explain", "-o", "json").data["fragments"]
    assert paced["pace_ms"] == 1_000
    assert "pace         1s, the least time between two batches" in medusa("explain").out


def test_explain_has_the_reliability_of_each_fragment(medusa: Caller) -> None:
    """In the data and in the text, also that of the default."""
    Path("sighting.avsc").write_text(SCHEMA)
    Path("network.py").write_text(CARS)
    (plain,) = medusa("explain", "-o", "json").data["fragments"]
    assert (plain["reliability"], plain["secondaries"]) == ("upstream_backup", 0)
    assert "reliability  upstream_backup: if its node fails" in medusa("explain").out
    followed = CARS.replace('where="speed > 0"', 'where="speed > 0", reliability="active_standby"')
    Path("network.py").write_text(followed)
    (one,) = medusa("explain", "-o", "json").data["fragments"]
    assert (one["reliability"], one["secondaries"]) == ("active_standby", 1)
    assert "reliability  active_standby, 1 secondary: it has no state" in medusa("explain").out


def test_explain_has_how_many_may_fail(medusa: Caller) -> None:
    """In the data and in the text; null: all nodes but one."""
    Path("sighting.avsc").write_text(SCHEMA)
    Path("network.py").write_text(CARS)
    (one,) = medusa("explain", "-o", "json").data["fragments"]
    assert one["nodes_may_fail"] is None
    brokers = one["brokers_may_fail"]
    assert (brokers["without_loss"], brokers["without_pause"]) == (0, 0)
    assert one["output"] in brokers["weakest"]
    assert "may fail     all nodes but one: it has no state to build" in medusa("explain").out


def test_a_mistake_in_python_is_printed_with_its_line(medusa: Caller) -> None:
    """In the data too."""
    Path("sighting.avsc").write_text(SCHEMA)
    Path("network.py").write_text(CARS.replace("speed >", "spede >"))
    shown = medusa("show", "-o", "json")
    (problem,) = shown.data["error"]["problems"]
    assert shown.code == 65
    assert (problem["file"], problem["line"], problem["box"]) == ("network.py", 5, "moving")
    assert "Traceback" not in shown.err
