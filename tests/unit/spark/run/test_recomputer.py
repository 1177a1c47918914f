"""Sessions of a replay, without Spark."""

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipeline.settings import combine
from pipeline.spark.run import replay
from pipeline.spark.run.replay import LOG_NAME, Servers, open_recomputer
from pipeline.spark.session import command_session
from tests.unit.spark.support import fragment


def test_the_output_of_java_is_not_mixed_with_that_of_a_replay(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is in a file next to the other logs; the session's own files are removed."""
    scratch: list[Path] = []

    def opened(settings: Any) -> SimpleNamespace:
        scratch.append(settings)
        os.write(2, b"WARNING: of Java")
        return SimpleNamespace()

    monkeypatch.setattr(replay, "find_java", lambda _: None)
    monkeypatch.setattr(replay, "session_settings", lambda *given: given[2])
    monkeypatch.setattr(replay, "open_session", opened)
    monkeypatch.setattr(command_session, "close_session", lambda _: None)
    settings = replace(combine(()), data=str(tmp_path / "data"))
    with open_recomputer(settings, cast("Servers", None), fragment("tolls"), {}) as found:
        assert scratch[0].is_dir()
        assert found.fragment.name == "tolls"
    assert not scratch[0].exists()
    assert (tmp_path / "data" / "logs" / LOG_NAME).read_text() == "WARNING: of Java"
    assert capfd.readouterr().err == ""
