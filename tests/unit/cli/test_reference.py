import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from pipeline.cli.main import cli
from pipeline.errors import ExitCode
from pipeline.settings import SETTINGS

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "command-line.md"
COMMON = {"--output", "--set", "--data", "--no-color", "--verbose", "--help"}


def verbs(group: click.Group, prefix: str = "medusa") -> Iterator[tuple[str, click.Command]]:
    """Every verb with its full name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from verbs(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", command


def section(name: str) -> str:
    """The part of the page about one verb."""
    found = re.search(
        rf"^### {re.escape(name)}$(.*?)(?=^##|\Z)",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    return found[1] if found else ""


@pytest.mark.parametrize(("name", "command"), list(verbs(cli)))
def test_every_verb_and_option_is_in_the_reference(name: str, command: click.Command) -> None:
    """Each verb has a section, which names each of its own options."""
    text = section(name)
    assert text, f"{name} has no section"
    for parameter in command.params:
        if not isinstance(parameter, click.Option) or parameter.hidden:
            continue
        long = [o for o in parameter.opts if o.startswith("--")]
        if name != "medusa demo" and not COMMON & set(long) and long != ["--file"]:
            assert any(option in text for option in long), f"{name} {long}"


@pytest.mark.parametrize(("name", "command"), list(verbs(cli)))
def test_every_verb_has_an_example(name: str, command: click.Command) -> None:
    """In its help text."""
    assert command.help
    assert f"  {name}" in command.help or name == "medusa demo"


def test_every_exit_code_is_in_the_reference_and_in_the_help() -> None:
    """Scripts depend on them."""
    text, epilog = PAGE.read_text(encoding="utf-8"), cli.epilog or ""
    for code in ExitCode:
        assert f"\n| {code.value} | " in text
        assert re.search(rf"(?<!\d){code.value} [a-z]", epilog), code


def test_every_setting_is_in_the_reference() -> None:
    """With its variable and its default."""
    text = PAGE.read_text(encoding="utf-8")
    for setting in SETTINGS:
        assert f"| `{setting.name}` | `{setting.environment}` |" in text
