"""Descriptions of topics that are asked of another connection when one does not answer soon.

The driver sends them to the broker that it believes to be the controller. Brokers name any of them
that lives as the controller, and the driver looks for another one only after minutes: so one broker
that hangs would delay what all the others can answer.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Final, Generic, TypeVar

from confluent_kafka import KafkaException

from brokers.kafka.errors import medusa_error
from brokers.kafka.renewed_client import Probed, RenewedClient
from pipeline.clock import Deadline
from pipeline.errors import UnavailableError

AGAIN_S: Final = 2.0
"""How long an answer is awaited before it is asked of a further connection, too."""
CONNECTIONS_MAX: Final = 4

C = TypeVar("C", bound=Probed)
Answers = Mapping[str, "Future[Any]"]
"""Answers to one request, by topic; they arrive together."""


class AskedTwice(Generic[C]):
    """A pending request; the connection that answers it is used from then on.

    Args:
        clients: the connections.
        ask: sends the request to one.
        deadline: of all answers.
    """

    def __init__(
        self, clients: RenewedClient[C], ask: Callable[[C], Answers], deadline: Deadline
    ) -> None:
        self._clients, self._ask, self._deadline = clients, ask, deadline
        first = clients.current
        self._asked: list[tuple[C, Answers]] = [(first, ask(first))]
        self._further = CONNECTIONS_MAX - 1

    @property
    def done(self) -> bool:
        """Whether `answers` returns at once."""
        return self._answer() is not None or self._deadline.passed

    def answers(self) -> Answers:
        """The answers of the first connection that has any; else its futures contain errors."""
        first, unanswered = self._asked[0]
        client, answers = self._awaited() or (first, unanswered)
        used = first if client is first or not self._clients.replace(first, client) else client
        for other, _ in self._asked[1:]:
            # One that the garbage collector finds may be closed in a thread of its own, which ends
            # the process.
            if other is not used:
                other.__exit__(None, None, None)
        self._asked = [(client, answers)]
        return answers

    def _awaited(self) -> tuple[C, Answers] | None:
        """Wait for an answer, and ask further connections; None: there is none."""
        while not self._deadline.passed:
            arrived = self._wait()
            found = self._answer()
            if found is not None:
                return found
            if self._further:
                self._ask_another()
            elif not arrived:
                break
        return None

    def _answer(self) -> tuple[C, Answers] | None:
        return next((one for one in self._asked if _is_answered(one[1])), None)

    def _wait(self) -> bool:
        """Wait until a connection has an answer or an error; whether one has."""
        pending = [one for _, found in self._asked for one in [*found.values()][-1:]]
        pending = [one for one in pending if not one.done()]
        if not pending or self._answer() is not None:
            return False
        left_s = self._deadline.remaining_s()
        within_s = min(AGAIN_S, left_s) if self._further else left_s
        return bool(wait(pending, within_s, FIRST_COMPLETED).done)

    def _ask_another(self) -> None:
        self._further -= 1
        another = self._clients.another()
        if another is not None:
            self._asked.append((another, self._ask(another)))


def _is_answered(found: Answers) -> bool:
    return all(one.done() and not _is_silence(one) for one in found.values())


def _is_silence(future: "Future[Any]") -> bool:
    """Whether a request has ended without an answer of a broker."""
    error = future.exception(0)
    return isinstance(error, KafkaException) and isinstance(medusa_error(error), UnavailableError)
