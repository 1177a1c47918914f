"""Free capacity of a cluster for a node, from its workers' free resources."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from pipeline.errors import UnavailableError
from pipeline.settings import Settings, combine
from pipeline.spark.session import master
from pipeline.spark.session.master import WorkerResources, look_at_master, megabytes, words

MASTER = "spark://one:7077"
HIGHLY_AVAILABLE = "spark://one:7077,two:7078"
FREE = WorkerResources(2, 4096)

Answers = Mapping[str, list[WorkerResources] | Py4JError]


def settings(memory: str, url: str = MASTER) -> Settings:
    """Settings of a node on a cluster."""
    return combine((("flag", {"spark.master": url, "spark.executor_memory": memory}),))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answers], list[str]]:
    """Sets the response of each master; returns the requested hosts, in order."""

    def answering(answers: Answers) -> list[str]:
        requests: list[str] = []

        def ask(_java: object, _own: str, host: str, _port: int) -> Iterator[WorkerResources]:
            requests.append(host)
            answer = answers[host]
            if isinstance(answer, Py4JError):
                raise answer
            yield from answer

        monkeypatch.setattr(master, "own_address", lambda _: "127.0.0.1")
        monkeypatch.setattr(master, "_java", nullcontext)
        monkeypatch.setattr(master, "_asked", ask)
        return requests

    return answering


@pytest.mark.parametrize(
    ("memory", "expected"), [("2g", 2048), ("512m", 512), ("2048K", 2), ("1t", 1024 * 1024)]
)
def test_memory_sizes_are_parsed_as_in_spark(memory: str, expected: int) -> None:
    """In upper and lower case."""
    assert megabytes(memory) == expected


def test_only_workers_with_room_for_an_executor_count() -> None:
    """A core without memory is of no use."""
    workers = (WorkerResources(4, 2048), WorkerResources(1, 1024), WorkerResources(8, 1023))
    assert words(workers, settings("1g")) == "3 workers, 5 free cores for executors"


@pytest.mark.parametrize(
    "workers",
    [(), (WorkerResources(0, 9000),), (WorkerResources(4, 1023), WorkerResources(0, 1024))],
)
def test_a_cluster_without_room_is_reported(workers: tuple[WorkerResources, ...]) -> None:
    """With the required resources, and the remedy."""
    with pytest.raises(UnavailableError, match="a free core and 1g of free memory") as caught:
        words(workers, settings("1g"))
    assert MASTER in caught.value.place
    assert "spark.cores" in caught.value.hint


@pytest.mark.parametrize("standby", [[], Py4JError("refused")])
def test_the_active_master_is_requested_after_a_standby(
    cluster: Callable[[Answers], list[str]], standby: list[WorkerResources] | Py4JError
) -> None:
    """A standby has no workers, or is unreachable."""
    requests = cluster({"one": standby, "two": [FREE]})
    seen = look_at_master(settings("1g", HIGHLY_AVAILABLE))
    assert seen == "1 worker, 2 free cores for executors"
    assert requests == ["one", "two"]


def test_no_other_master_is_requested_after_one_with_workers(
    cluster: Callable[[Answers], list[str]],
) -> None:
    """Only one is active."""
    requests = cluster({"one": [FREE], "two": []})
    look_at_master(settings("1g", HIGHLY_AVAILABLE))
    assert requests == ["one"]


@pytest.mark.parametrize("url", [MASTER, HIGHLY_AVAILABLE])
def test_a_cluster_without_workers_has_no_room(
    cluster: Callable[[Answers], list[str]], url: str
) -> None:
    """The masters are reachable, but no worker has registered."""
    cluster({"one": [], "two": []})
    with pytest.raises(UnavailableError, match="none of 0 workers"):
        look_at_master(settings("1g", url))


def test_an_address_that_is_no_master_is_reported(cluster: Callable[[Answers], list[str]]) -> None:
    """With the address, Spark's reason and the remedy."""
    cluster({"one": Py4JError("java.io.InvalidClassException: other version")})
    with pytest.raises(UnavailableError, match="no Spark master, or one of another") as caught:
        look_at_master(settings("1g"))
    assert "other version" in str(caught.value)
    assert MASTER in caught.value.place
    assert "port" in caught.value.hint
