"""The units of systemd call commands that exist, with settings that exist."""

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from pipeline.cli.main import cli
from pipeline.errors import ExitCode
from pipeline.settings import SETTINGS
from tests.tidy.tree import ROOT

UNITS = tuple(sorted((ROOT / "systemd").glob("*.service")))
PROGRAM = "/opt/medusa/bin/medusa"


def lines(unit: Path, name: str) -> list[str]:
    """What a unit says of something."""
    return re.findall(rf"^{name}=(.*)$", unit.read_text("utf-8"), re.MULTILINE)


def test_there_are_units() -> None:
    """Else nothing below would be looked at."""
    assert len(UNITS) > 1


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_calls_a_command_that_exists(unit: Path) -> None:
    """With options that it has."""
    (started,) = lines(unit, "ExecStart")
    program, *arguments = started.split()
    assert program == PROGRAM
    command: click.Command = cli
    context = click.Context(command)
    while isinstance(command, click.Group):
        name, found, arguments = command.resolve_command(context, arguments)
        assert found is not None
        command, context = found, click.Context(found, parent=context, info_name=name)
    command.make_parser(context).parse_args(arguments)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_sets_what_can_be_set(unit: Path) -> None:
    """A misspelt variable would silently leave a setting at its default."""
    known = {setting.environment for setting in SETTINGS}
    assert {one.partition("=")[0] for one in lines(unit, "Environment")} <= known


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_starts_again_but_for_mistakes(unit: Path) -> None:
    """Those would come again."""
    assert lines(unit, "Restart") == ["always"]
    codes = f"{ExitCode.USAGE.value} {ExitCode.BAD_INPUT.value}"
    assert lines(unit, "RestartPreventExitStatus") == [codes]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_understands_a_unit(unit: Path, tmp_path: Path) -> None:
    """Every line of it; only the program is another one, which is installed here."""
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text("utf-8").replace(PROGRAM, "/bin/true"), "utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", str(copy)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    own = [line for line in done.stderr.splitlines() if unit.name in line]
    assert own == []
