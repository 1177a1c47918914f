from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from pipeline.cli.common import Common
from pipeline.cli.main import COMMANDS, cli
from pipeline.cli.output import Format
from tests.unit.deploy.twins import write_project

Caller = Callable[..., Any]


def test_options_before_the_verb_equal_those_after_it(medusa: Caller) -> None:
    """The format, settings, and the data folder; also before the second word of a verb."""
    behind = medusa("config", "show", "-o", "json", "--set", "node=n7", "--data", "there")
    assert behind.code == 0
    options = ("-o", "json", "--set", "node=n7", "--data", "there")
    assert medusa(*options, "config", "show").out == behind.out
    assert medusa("config", *options, "show").out == behind.out
    assert medusa(*options[:2], "config", *options[2:4], "show", *options[4:]).out == behind.out


def test_later_options_override_earlier_ones(medusa: Caller) -> None:
    """A format and a setting that are given twice; other earlier ones are kept."""
    before = ("-o", "yaml", "--set", "node=n1", "--set", "participant=p")
    shown = medusa(*before, "config", "show", "-o", "json", "--set", "node=n2").data
    found = {one["name"]: one["value"] for one in shown["settings"]}
    assert (found["node"], found["participant"]) == ("n2", "p")


def test_a_mistake_before_the_verb_is_a_usage_error(medusa: Caller) -> None:
    """With the same message as after it."""
    assert medusa("-o", "xml", "config", "show").code == 64
    wrong = medusa("--set", "noed=n1", "config", "show")
    assert wrong.code == 64
    assert "--set noed" in wrong.err
    assert medusa("-o", "json").code == 64


def test_an_error_is_data_if_the_format_is_before_the_verb(medusa: Caller) -> None:
    """As if it were after it."""
    assert medusa("-o", "json", "show").data["error"]["code"] == "bad-input"


def test_options_are_combined_in_their_order() -> None:
    """Absent ones change nothing; a flag that is set stays set."""
    nothing = {"output": None, "assignments": (), "data": None, "no_color": False}
    first = Common().updated({"output": "json", "no_color": True, "assignments": ("a=1",)})
    assert first.updated(nothing) == Common(Format.JSON, ("a=1",), no_color=True)
    assert first.updated({"assignments": ("a=2",), "verbose": True}) == Common(
        Format.JSON, ("a=1", "a=2"), no_color=True, verbose=True
    )


@pytest.mark.parametrize("name", ["show", "explain"])
def test_the_document_may_be_an_argument(medusa: Caller, name: str) -> None:
    """Alone, or with -f for the same file; two different files are a usage error."""
    write_project(Path())
    Path("network.yaml").rename("cars.yaml")
    by_option = medusa(name, "-f", "cars.yaml")
    assert by_option.code == 0
    assert medusa(name, "cars.yaml").out == by_option.out
    assert medusa(name, "cars.yaml", "-f", "./cars.yaml").out == by_option.out
    both = medusa(name, "cars.yaml", "-f", "vans.yaml")
    assert both.code == 64
    assert "two documents are named: cars.yaml, and vans.yaml with -f" in both.err
    assert medusa(name, "vans.yaml").code == 65


def test_every_verb_with_a_document_takes_it_as_an_argument() -> None:
    """Except `test`, whose arguments are tests, and `produce`."""
    context = click.Context(cli)
    commands = [cli.get_command(context, name) for name in COMMANDS]
    by_option = {
        command.name
        for command in commands
        if command and any("--file" in p.opts for p in command.params)
    }
    behind = {
        command.name
        for command in commands
        if command and any(p.human_readable_name == "[FILE]" for p in command.params)
    }
    assert behind == {"show", "explain", "plan", "deploy", "doctor"}
    assert by_option - behind == {"test", "produce"}
