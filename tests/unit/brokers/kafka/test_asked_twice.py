from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from brokers.kafka import asked_twice
from brokers.kafka.asked_twice import CONNECTIONS_MAX, AskedTwice
from brokers.kafka.renewed_client import RenewedClient
from pipeline.clock import Deadline
from pipeline.system_clock import SystemClock

SILENT = KafkaException(KafkaError(KafkaError._TIMED_OUT))
NOT_ALLOWED = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))


@dataclass
class Client:
    """A connection; `answer`: of each request, at once, or an error; None: there is none."""

    answer: str | KafkaException | None
    closed: bool = False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closed = True

    def describe_cluster(self, *, request_timeout: float) -> "Future[Any]":
        """Nothing asks for it here."""
        raise AssertionError(request_timeout)

    def describe(self) -> "Mapping[str, Future[Any]]":
        """The answer about a topic."""
        found: Future[Any] = Future()
        if isinstance(self.answer, KafkaException):
            found.set_exception(self.answer)
        elif self.answer is not None:
            found.set_result(self.answer)
        return {"topic": found}


@dataclass
class Cluster:
    """Connections in the order in which they are made; the last one is repeated."""

    answers: list[str | KafkaException | None]
    made: list[Client] = field(default_factory=list)

    def make(self) -> Client:
        """One more."""
        at = min(len(self.made), len(self.answers) - 1)
        self.made.append(Client(self.answers[at]))
        return self.made[-1]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_twice, "AGAIN_S", 0.01)


def asked(
    cluster: Cluster, within_s: float = 10.0
) -> tuple[AskedTwice[Client], RenewedClient[Client]]:
    """A pending request."""
    clock = SystemClock()
    clients = RenewedClient(cluster.make, clock)
    return AskedTwice(clients, Client.describe, Deadline.after(clock, within_s, "x")), clients


def test_a_connection_that_answers_is_the_only_one() -> None:
    """An error of a broker is an answer, too."""
    for answer in ("found", NOT_ALLOWED):
        cluster = Cluster([answer])
        request, _ = asked(cluster)
        assert request.done
        assert request.answers()["topic"].done()
        assert len(cluster.made) == 1


@pytest.mark.parametrize("first", [None, SILENT])
def test_another_connection_is_asked_if_there_is_no_answer(first: KafkaException | None) -> None:
    """And used from then on."""
    cluster = Cluster([first, None, "found"])
    request, clients = asked(cluster)
    assert not request.done
    assert request.answers()["topic"].result(0) == "found"
    assert clients.current is cluster.made[2]
    assert request.done
    assert [one.closed for one in cluster.made] == [False, True, False]


@pytest.mark.parametrize("answer", [None, SILENT])
def test_without_any_answer_the_connection_remains(answer: KafkaException | None) -> None:
    """A limited number of others is tried, within the deadline."""
    cluster = Cluster([answer])
    request, clients = asked(cluster, within_s=0.3)
    found = request.answers()["topic"]
    assert found.done() is (answer is not None)
    assert len(cluster.made) == CONNECTIONS_MAX
    assert clients.current is cluster.made[0]
    assert [one.closed for one in cluster.made] == [False, True, True, True]
