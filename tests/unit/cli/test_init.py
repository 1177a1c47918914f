from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.unit.cli.twins import opener
from tests.unit.deploy.twins import World, write_project

Caller = Callable[..., Any]


def test_init_writes_into_the_current_folder(medusa: Caller) -> None:
    """After `init` the next commands work without cd: settings and document are here."""
    called = medusa("init", "tolls", "-o", "json")
    assert called.code == 0, called.err
    assert Path("network.yaml").is_file()
    assert Path("schemas/sighting.avsc").is_file()
    assert Path("medusa.yaml").is_file()
    assert "producer.py" in called.data["files"]
    assert not list(Path().rglob("__*"))


def test_init_refuses_a_folder_with_a_project(medusa: Caller) -> None:
    """Nothing is overwritten, and nothing new is written."""
    Path("network.yaml").write_text("mine", encoding="utf-8")
    called = medusa("init", "tolls")
    assert called.code == 65
    assert "network.yaml" in called.err
    assert Path("network.yaml").read_text(encoding="utf-8") == "mine"
    assert not Path("schemas").exists()


def test_init_into_another_folder(medusa: Caller) -> None:
    """--into makes the folder and says to go there."""
    called = medusa("init", "tolls", "--into", "a/b")
    assert called.code == 0
    assert Path("a/b/network.yaml").is_file()
    assert "cd a/b" in called.out


def test_unknown_template_is_a_usage_error(medusa: Caller) -> None:
    """The templates that exist are named."""
    called = medusa("init", "nonsense")
    assert called.code == 64
    assert "tolls" in called.err


def test_a_folder_that_cannot_be_written_is_told(medusa: Caller) -> None:
    """A file in the way of the folder is a problem of this machine, not a trace."""
    Path("taken").write_text("", encoding="utf-8")
    assert medusa("init", "tolls", "--into", "taken/x").code == 69


def test_a_blank_project_says_what_is_missing_and_is_good_once_it_is_filled_in(
    medusa: Caller,
) -> None:
    """Three values, no more; the box and the output fit any schema."""
    called = medusa("init", "blank")
    assert (called.code, called.err) == (0, "")
    assert "fill in the stream of network.yaml" in called.out
    assert "producer.py" not in called.out
    unfilled = medusa("show")
    assert unfilled.code == 65
    for key in ("topic", "subject", "event_time"):
        assert f"{key} of stream events has no value" in unfilled.err
    write_project(Path("other"))
    text = Path("network.yaml").read_text(encoding="utf-8")
    text = text.replace("topic:   ", "topic: cars").replace("event_time:  ", "event_time: seen_at ")
    text = text.replace("subject:   ", "schema: other/sighting.avsc ")
    Path("network.yaml").write_text(text, encoding="utf-8")
    shown = medusa("show")
    assert shown.code == 0, shown.err
    assert "[events-per-minute]" in shown.out
    assert medusa("plan", opener=opener(World.new())).code == 0
