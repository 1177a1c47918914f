"""Detection of an unusable session; without Spark."""

from types import SimpleNamespace
from typing import cast

from pipeline.errors import EnvironmentProblem
from pipeline.spark.session.session import Session, watch_session


def session(exit_code: int | None) -> Session:
    """A session whose Java process runs, or has ended; it has no other calls."""
    gateway = SimpleNamespace(proc=SimpleNamespace(poll=lambda: exit_code))
    return cast("Session", SimpleNamespace(sparkContext=SimpleNamespace(_gateway=gateway)))


def test_an_ended_java_process_is_reported_for_any_master() -> None:
    """Only a new node helps."""
    for master in ("local[2]", "spark://one:7077"):
        found = watch_session(session(137), master)()
        assert isinstance(found, EnvironmentProblem)
        assert "Java process" in found.message


def test_a_local_session_has_no_executors_to_watch() -> None:
    """There are none."""
    assert watch_session(session(None), "local[2]")() is None
