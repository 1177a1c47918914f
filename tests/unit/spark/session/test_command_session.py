"""Session of a command, with another child than Java."""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from pipeline.errors import EnvironmentProblem
from pipeline.spark.session import command_session as subject
from pipeline.spark.session.command_session import command_session

_WRITES_AND_STAYS = "import os, time; os.write(2, b'of Java'); time.sleep(600)"
_ENDS_WITHIN_S = 60


class Java:
    """Opens sessions, each with a child that writes output and runs until it is ended."""

    def __init__(self) -> None:
        self.children: list[subprocess.Popen[bytes]] = []
        self.closed: list[str] = []

    def open(self) -> SparkSession:
        """A placeholder of an open session."""
        self.children.append(subprocess.Popen([sys.executable, "-c", _WRITES_AND_STAYS]))
        return cast("SparkSession", self.children[-1])


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> Iterator[Java]:
    """Opens sessions, and records how they were closed."""
    found = Java()
    monkeypatch.setattr(subject, "close_session", lambda _: found.closed.append("closed"))
    monkeypatch.setattr(subject, "leave_session", lambda _: found.closed.append("left"))
    handlers = list(logging.getLogger().handlers)
    yield found
    logging.getLogger().handlers[:] = handlers
    for one in found.children:
        one.kill()
        one.wait()


def test_ctrl_c_kills_java_before_any_cleanup(java: Java, tmp_path: Path) -> None:
    """So that no call waits for its computation."""
    with pytest.raises(KeyboardInterrupt):
        _interrupted(java, tmp_path)
    assert java.closed == ["left"]


def _interrupted(java: Java, folder: Path) -> None:
    with command_session(java.open, folder / "java.log"):
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            assert java.children[0].wait(_ENDS_WITHIN_S) == -signal.SIGKILL


def test_without_ctrl_c_nothing_is_killed(java: Java, tmp_path: Path) -> None:
    """The session is closed normally."""
    with command_session(java.open, tmp_path / "java.log"):
        pass
    assert java.closed == ["closed"]
    assert java.children[0].poll() is None


def test_the_output_of_java_is_written_to_a_file(
    java: Java, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """And stderr is restored as soon as the session is open."""
    log = tmp_path / "java.log"
    with command_session(java.open, log):
        os.write(2, b"of ours")
        ends_at = time.monotonic() + _ENDS_WITHIN_S
        while not log.stat().st_size and time.monotonic() < ends_at:
            time.sleep(0.05)
    assert log.read_text(encoding="utf-8") == "of Java"
    assert capfd.readouterr().err == "of ours"


def test_the_output_of_a_failed_start_of_java_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is the only source of the cause."""

    def fail() -> SparkSession:
        os.write(2, b"no such option")
        raise EnvironmentProblem("the Spark session could not be opened")

    with pytest.raises(EnvironmentProblem), command_session(fail, tmp_path / "java.log"):
        pass
    assert capfd.readouterr().err == "no such option"


def test_py4j_messages_about_an_interrupted_call_are_not_printed(
    java: Java, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without any handler, the logging library itself would print them."""
    logging.getLogger().handlers.clear()
    with command_session(java.open, tmp_path / "java.log"):
        logging.error("Exception while sending command.")  # noqa: LOG015 - py4j does it so
    logging.error("Exception while sending command.")  # noqa: LOG015 - and afterwards
    assert capfd.readouterr().err == ""
