"""What tells that a session is of no use any more; without Spark."""

from types import SimpleNamespace
from typing import cast

from pipeline.errors import EnvironmentProblem
from pipeline.spark.session.session import Session, watch_session


def session(exit_code: int | None) -> Session:
    """A session whose Java process runs, or has ended; nothing else can be asked of it."""
    gateway = SimpleNamespace(proc=SimpleNamespace(poll=lambda: exit_code))
    return cast("Session", SimpleNamespace(sparkContext=SimpleNamespace(_gateway=gateway)))


def test_a_java_process_that_has_ended_is_told_whatever_the_master() -> None:
    """Only a new node helps."""
    for master in ("local[2]", "spark://one:7077"):
        found = watch_session(session(137), master)()
        assert isinstance(found, EnvironmentProblem)
        assert "Java process" in found.message


def test_on_this_machine_nobody_asks_for_executors() -> None:
    """There are none."""
    assert watch_session(session(None), "local[2]")() is None
