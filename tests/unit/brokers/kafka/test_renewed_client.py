from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from brokers.kafka.renewed_client import KEPT_S, PROBE_S, RENEW_S, RenewedClient
from tests.unit.deploy.twins import TwinClock

UNAVAILABLE = KafkaException(KafkaError(KafkaError._TIMED_OUT))


@dataclass
class Client:
    """A client; its cluster answers it, or does not."""

    answers: bool
    closed: bool = False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        self.closed = True

    def describe_cluster(self, *, request_timeout: float) -> "Future[Any]":
        """The answer."""
        assert request_timeout == PROBE_S
        found: Future[Any] = Future()
        if self.answers:
            found.set_result(None)
        else:
            found.set_exception(UNAVAILABLE)
        return found


@dataclass
class Cluster:
    """Clients that were made; `reachable`: whether a new one gets answers."""

    reachable: bool = True
    full: bool = False
    made: list[Client] = field(default_factory=list)

    def make(self) -> Client:
        """One more; none if there is no room for it."""
        if self.full:
            raise UNAVAILABLE
        self.made.append(Client(self.reachable))
        return self.made[-1]


def unanswered(cluster: Cluster) -> tuple[RenewedClient[Client], TwinClock]:
    """A client whose requests have not been answered for a moment less than the limit."""
    clock = TwinClock()
    renewed = RenewedClient(cluster.make, clock)
    renewed.note(answered=False)
    clock.sleep(RENEW_S - 1)
    renewed.note(answered=False)
    assert renewed.current is cluster.made[0]
    return renewed, clock


def test_a_client_without_answers_is_replaced_by_one_with_answers() -> None:
    """And that one is used on."""
    cluster = Cluster()
    renewed, clock = unanswered(cluster)
    clock.sleep(1)
    assert renewed.current is cluster.made[1]
    clock.sleep(10 * RENEW_S)
    assert renewed.current is cluster.made[1]


def test_in_an_outage_the_client_remains() -> None:
    """A new one is tried once in a while, and has no answer either."""
    cluster = Cluster(reachable=False)
    renewed, clock = unanswered(cluster)
    for trials in (1, 1, 2):
        clock.sleep(RENEW_S / 2)
        assert renewed.current is cluster.made[0]
        assert len(cluster.made) == 1 + trials


def test_an_answer_ends_the_count() -> None:
    """Some requests fail in any outage that is over."""
    cluster = Cluster()
    renewed, clock = unanswered(cluster)
    renewed.note(answered=True)
    clock.sleep(2 * RENEW_S)
    assert renewed.current is cluster.made[0]
    renewed.note(answered=False)
    assert renewed.current is cluster.made[0]


def test_a_client_that_cannot_be_made_is_no_error() -> None:
    """The machine has no thread left; the client there is remains."""
    cluster = Cluster()
    renewed, clock = unanswered(cluster)
    cluster.full = True
    clock.sleep(1)
    assert renewed.current is cluster.made[0]


def test_a_replaced_client_is_closed_long_after() -> None:
    """With the next replacement: requests may still be pending in it before."""
    cluster, clock = Cluster(), TwinClock()
    renewed = RenewedClient(cluster.make, clock)
    for pause_s in (0, KEPT_S - 1, 1):
        clock.sleep(pause_s)
        renewed.replace(renewed.current, cluster.make())
    assert [one.closed for one in cluster.made] == [True, False, False, False]


def test_a_client_is_replaced_once() -> None:
    """Of two requests that it has not answered, the second finds the new one."""
    cluster = Cluster()
    renewed = RenewedClient(cluster.make, TwinClock())
    first, second, third = renewed.current, cluster.make(), cluster.make()
    assert renewed.replace(first, second)
    assert not renewed.replace(first, third)
    assert renewed.current is second
