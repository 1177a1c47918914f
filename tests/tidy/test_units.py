"""systemd units: their commands, options and settings exist."""

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
    """Values of a key in a unit."""
    return re.findall(rf"^{name}=(.*)$", unit.read_text("utf-8"), re.MULTILINE)


def test_there_are_units() -> None:
    """Else the tests below would check nothing."""
    assert len(UNITS) > 1


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_calls_a_command_that_exists(unit: Path) -> None:
    """With existing options."""
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
def test_a_unit_sets_only_existing_settings(unit: Path) -> None:
    """A misspelt variable would silently leave a setting at its default."""
    known = {setting.environment for setting in SETTINGS}
    assert {one.partition("=")[0] for one in lines(unit, "Environment")} <= known


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_restarts_except_after_configuration_errors(unit: Path) -> None:
    """A restart would fail with the same error."""
    assert lines(unit, "Restart") == ["always"]
    codes = f"{ExitCode.USAGE.value} {ExitCode.BAD_INPUT.value}"
    assert lines(unit, "RestartPreventExitStatus") == [codes]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_accepts_a_unit(unit: Path, tmp_path: Path) -> None:
    """All of its lines; only the program is replaced by one that is installed here."""
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text("utf-8").replace(PROGRAM, "/bin/true"), "utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", str(copy)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    own = [line for line in done.stderr.splitlines() if unit.name in line]
    assert own == []
