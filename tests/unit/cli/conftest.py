"""Fixtures of the command line's tests."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipeline.cli.main import run
from pipeline.cli.session import Opener


@dataclass(frozen=True, slots=True)
class Called:
    """Result of a call: exit code and output."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Its output, parsed as JSON."""
        return json.loads(self.out)


Caller = Callable[..., Called]


@pytest.fixture
def medusa(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Caller:
    """Caller of the command line, in an empty folder with an empty environment."""
    home = tmp_path / "home"
    home.mkdir()
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for name in ("KAFKA_BOOTSTRAP_SERVERS", "ZOOKEEPER_CONNECT", "SCHEMA_REGISTRY_URL", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: str, opener: Opener | None = None) -> Called:
        capsys.readouterr()
        code = run(arguments, opener)
        captured = capsys.readouterr()
        return Called(int(code), captured.out, captured.err)

    return call
