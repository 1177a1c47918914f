"""Settings of a session on a cluster, and detection of a lost one; without Spark."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors.exceptions.base import PySparkException

from pipeline.errors import EnvironmentProblem, UnavailableError
from pipeline.settings import problem_with
from pipeline.spark.session.cluster import (
    EXECUTORS_WITHIN_S,
    ExecutorWatch,
    Share,
    addresses,
    await_executors,
    check_folder,
    cluster_config,
    is_cluster,
    own_address,
)

MASTER = "spark://one:7077"


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,4]"])
def test_local_masters_are_no_clusters(master: str) -> None:
    """They need no settings of a cluster."""
    assert problem_with("spark.master", master) is None
    assert not is_cluster(master)


def test_a_master_has_one_address_or_several() -> None:
    """Standby masters are separated by commas; all have ports."""
    several = "spark://one:7077,[::1]:7078"
    assert problem_with("spark.master", several) is None
    assert is_cluster(several)
    assert addresses(several) == (("one", 7077), ("::1", 7078))


@pytest.mark.parametrize(
    "master", ["yarn", "k8s://one:6443", "spark://one", "spark://one:0", "spark://a b:1"]
)
def test_other_masters_are_refused(master: str) -> None:
    """Untested ones are not supported."""
    found = problem_with("spark.master", master)
    assert found is not None
    assert "spark://HOST:PORT" in found.message


@pytest.mark.parametrize(("host", "bound"), [("", "10.0.0.7"), ("node.example", "0.0.0.0")])  # noqa: S104 - nothing is bound
def test_executors_get_our_address(host: str, bound: str) -> None:
    """The one that the master sees, or that of a setting; then we listen on all addresses."""
    config = cluster_config(Share(4, "3g", host), "10.0.0.7", "-Xss4m")
    assert config["spark.driver.host"] == (host or "10.0.0.7")
    assert config["spark.driver.bindAddress"] == bound
    assert (config["spark.cores.max"], config["spark.executor.memory"]) == ("4", "3g")


def test_a_batch_is_never_computed_in_parts() -> None:
    """A failed task ends it, otherwise a count of its records could count some twice."""
    config = cluster_config(Share(), "10.0.0.7", "")
    assert config["spark.task.maxFailures"] == "1"
    assert config["spark.stage.maxConsecutiveAttempts"] == "1"


def test_the_address_is_that_of_the_route_to_a_reachable_master() -> None:
    """One of them is enough."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody, somebody = closed.getsockname()[1], server.getsockname()[1]
        found = own_address(f"spark://127.0.0.1:{nobody},127.0.0.1:{somebody}")
    assert found == "127.0.0.1"


def test_an_unreachable_master_is_reported() -> None:
    """With its address, and the remedy."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(UnavailableError, match="does not answer: Connection refused") as caught:
            own_address(master)
    assert caught.value.place == f"spark.master {master}"
    assert caught.value.hint


def test_waiting_ends_with_the_first_executor() -> None:
    """However many follow."""
    counts = [1, 0, 0]
    await_executors(MASTER, counts.pop, sleep=lambda _: None)
    assert counts == []


def test_waiting_for_executors_times_out() -> None:
    """A master may lack room for any time."""
    slept: list[float] = []
    with pytest.raises(UnavailableError, match="gave no executor within 3 s") as caught:
        await_executors(MASTER, lambda: 0, within_s=3, sleep=slept.append)
    assert sum(slept) == pytest.approx(3)
    assert MASTER in caught.value.place
    assert "spark.executor_memory" in caught.value.hint


class World:
    """A cluster as the watch reads it."""

    def __init__(self) -> None:
        self.now_s, self.executors, self.stopped = 0.0, 1, False

    def watch(self, count: Callable[[], int] | None = None) -> ExecutorWatch:
        """A watch that begins now."""
        return ExecutorWatch(
            MASTER, count or (lambda: self.executors), lambda: self.stopped, lambda: self.now_s
        )


def test_executors_may_be_missing_for_a_while() -> None:
    """The master starts others; a session is unusable only when they are missing for long."""
    world = World()
    watch = world.watch()
    world.now_s = 1000.0
    assert watch.trouble() is None
    world.executors = 0
    world.now_s += EXECUTORS_WITHIN_S
    assert watch.trouble() is None
    world.executors = 1
    assert watch.trouble() is None
    world.executors = 0
    world.now_s += EXECUTORS_WITHIN_S + 1
    found = watch.trouble()
    assert isinstance(found, UnavailableError)
    assert found.message == "the Spark master has given no executor for 61 s"
    assert MASTER in found.place


def test_an_application_ended_by_the_cluster_is_reported_at_once() -> None:
    """No lane can run in it."""
    world = World()
    world.stopped = True
    found = world.watch().trouble()
    assert found is not None
    assert "has ended this node's application" in found.message


def test_an_ended_java_process_is_not_reported_by_the_watch() -> None:
    """Its end is reported by another part."""

    def count() -> int:
        raise Py4JNetworkError("gone")

    assert World().watch(count).trouble() is None


class Executors:
    """A session whose executors write numbers, a line each, into a folder."""

    def __init__(self, folder: Path | None, error: Exception | None = None) -> None:
        self.sparkContext = self
        self.defaultParallelism = 4
        self.write = self
        self._folder, self._error = folder, error
        self._count = 0

    def range(self, first: int, end: int, step: int, parts: int) -> "Executors":
        """One row for each part."""
        assert (first, step, parts) == (0, 1, end)
        self._count = end
        return self

    def csv(self, uri: str) -> None:
        """Write below the named folder, or below another one."""
        if self._error is not None:
            raise self._error
        folder = Path(uri.removeprefix("file://"))
        folder = (self._folder or folder.parent) / folder.name
        folder.mkdir()
        for number in range(self._count):
            (folder / f"part-{number}").write_text(f"{number}\n")

    def cancelAllJobs(self) -> None:  # noqa: N802 - Spark's name
        """Nothing runs."""


def test_a_shared_folder_is_left_unchanged(tmp_path: Path) -> None:
    """Test files are removed."""
    check_folder(cast("Any", Executors(None)), MASTER, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_different_folder_of_the_same_name_is_reported(tmp_path: Path) -> None:
    """Executors would write checkpoints that no other process can read."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()
    with pytest.raises(EnvironmentProblem, match="is not seen here") as caught:
        check_folder(cast("Any", Executors(theirs)), MASTER, ours)
    assert str(ours) in caught.value.place
    assert "at the same path" in caught.value.hint


def test_a_folder_that_executors_cannot_write_is_reported(tmp_path: Path) -> None:
    """With Spark's message."""
    error = PySparkException("Mkdirs failed to create it")
    with pytest.raises(EnvironmentProblem, match=r"cannot write .*: Mkdirs failed"):
        check_folder(cast("Any", Executors(None, error)), MASTER, tmp_path)
