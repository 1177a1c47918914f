"""The commands of the guide and the README, run in an empty folder."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from brokers.ports import free_port

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[3]
GUIDE = ROOT / "docs" / "guide.md"
README = ROOT / "README.md"
BLOCK = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND_WITHIN_S = 300.0
OF_OTHERS = re.compile(
    r"^\s+at [\w.$/]+\(|^Traceback |^\d\d/\d\d/\d\d [\d:]+ (WARN|ERROR) ", re.MULTILINE
)
"""Output of Java, Python and Spark that is not Medusa's."""


@dataclass(frozen=True, slots=True)
class Step:
    """Commands of the guide, with their documented exit code and output."""

    commands: str
    exit_code: int
    shows: tuple[str, ...]


def steps(text: str) -> list[Step]:
    """The blocks marked `sh run`, each with the following `text shows` block."""
    found: list[Step] = []
    for block in BLOCK.finditer(text):
        words = block["info"].split()
        if words[:2] == ["sh", "run"]:
            code = next((int(w.removeprefix("exit=")) for w in words if w.startswith("exit=")), 0)
            found.append(Step(block["body"], code, ()))
        elif words == ["text", "shows"]:
            last = found.pop()
            lines = tuple(line.strip() for line in block["body"].splitlines() if line.strip())
            found.append(Step(last.commands, last.exit_code, lines))
    return found


def plain(text: str) -> str:
    """Text with normalised spaces, independent of column widths."""
    return " ".join(text.split())


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment with `medusa` and `python` on its path, and free ports."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, arguments in (("medusa", "-P -m medusa_streams"), ("python", "")):
        script = programs / name
        script.write_text(
            f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n', encoding="ascii"
        )
        script.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{free_port()}",
        "ZOOKEEPER_CONNECT": f"127.0.0.1:{free_port()}/medusa",
        "SCHEMA_REGISTRY_URL": f"http://127.0.0.1:{free_port()}",
    }
    yield environment
    run("medusa down", tmp_path / "project", environment)


def run(
    commands: str, folder: Path, environment: dict[str, str]
) -> "subprocess.CompletedProcess[str]":
    """Run commands as a reader's shell would; both outputs together."""
    return subprocess.run(
        ["sh", "-e", "-c", commands],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        timeout=COMMAND_WITHIN_S,
        check=False,
    )


def test_commands_of_the_guide_behave_as_documented(tmp_path: Path, shell: dict[str, str]) -> None:
    """Exit codes and shown lines are as written, from `init` to `down`."""
    project = tmp_path / "project"
    project.mkdir()
    follow(steps(GUIDE.read_text(encoding="utf-8")), project, shell)


@pytest.mark.second_tier("the guide: the same verbs; tests/unit/cli/test_readme.py: its network")
def test_the_first_example_of_the_readme_works(tmp_path: Path, shell: dict[str, str]) -> None:
    """From the ten lines to records in their output topic."""
    project = tmp_path / "project"
    project.mkdir()
    text = README.read_text(encoding="utf-8")
    (network,) = (b["body"] for b in BLOCK.finditer(text) if b["info"] == "yaml speeds.yaml")
    (project / "speeds.yaml").write_text(network, encoding="utf-8")
    (screen,) = steps(text)
    *before, tail = (Step(line, 0, ()) for line in screen.commands.splitlines())
    follow([*before, replace(tail, shows=('"window_end":',))], project, shell)


def follow(steps_to_do: list[Step], project: Path, shell: dict[str, str]) -> None:
    """Run commands in order; exit codes and output must be as documented, without stack traces."""
    for step in steps_to_do:
        done = run(step.commands, project, shell)
        where = f"{step.commands}\n{done.stdout}"
        assert done.returncode == step.exit_code, where
        assert not OF_OTHERS.search(done.stdout), where
        for line in step.shows:
            assert plain(line) in plain(done.stdout), f"{line!r} is not shown by\n{where}"


def test_a_second_up_in_the_same_project_is_refused(tmp_path: Path, shell: dict[str, str]) -> None:
    """The error contains the running process, which keeps running."""
    project = tmp_path / "project"
    project.mkdir()
    first = run("medusa init tolls && medusa up --detach --no-node", project, shell)
    assert first.returncode == 0, first.stdout
    second = run("medusa up --detach", project, shell)
    assert second.returncode == 65, second.stdout
    assert "a stack runs here already: process" in second.stdout
    assert run("medusa schema list", project, shell).returncode == 0
    assert run("medusa node list", project, shell).returncode == 0
    assert run("medusa down && medusa down", project, shell).returncode == 0
