"""What we may do at the brokers. It is asked by looking: nothing is changed."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported unmarked
    AdminClient,
    NewTopic,
)

from brokers.kafka.config import client_config
from brokers.kafka.errors import NoSuchTopicError, TopicExistsError, medusa_error
from brokers.kafka.servers import KafkaServers
from brokers.kafka.transactions import TransactionalWriter
from brokers.records import NewTopicSpec
from pipeline.clock import Clock, Deadline, SystemClock
from pipeline.errors import MedusaError, RetryError, UnavailableError
from pipeline.ids import GroupName, TopicName, TransactionalId

AGAIN_AFTER_S = 0.2
T = TypeVar("T")


class KafkaRights:
    """Asks what a user may do. Every answer that could not be had is an error of its own."""

    def __init__(self, brokers: KafkaServers, timeout_s: float) -> None:
        self._brokers = brokers
        self._timeout_s = timeout_s
        self._client = AdminClient(client_config(brokers))

    def on_topics(
        self, topics: Iterable[TopicName]
    ) -> Mapping[TopicName, frozenset[str] | MedusaError]:
        """By Kafka's words for them, the operations that we may do with those topics that exist."""
        names: list[str] = sorted(set(topics))
        if not names:
            return {}
        futures = self._client.describe_topics(
            TopicCollection(names),
            include_authorized_operations=True,
            request_timeout=self._timeout_s,
        )
        found: dict[TopicName, frozenset[str] | MedusaError] = {}
        for name, future in futures.items():
            answer = self._answer(future, f"topic {name}")
            if isinstance(answer, NoSuchTopicError):
                continue
            found[TopicName(name)] = (
                answer
                if isinstance(answer, MedusaError)
                else frozenset(one.name for one in answer.authorized_operations or ())
            )
        return found

    def why_not_created(
        self, specs: Iterable[NewTopicSpec]
    ) -> Mapping[TopicName, MedusaError | None]:
        """What the brokers have against making topics; they are asked, and make none."""
        new = [NewTopic(s.name, s.partitions, s.replication, config=dict(s.config)) for s in specs]
        if not new:
            return {}
        futures = self._client.create_topics(
            new, validate_only=True, request_timeout=self._timeout_s
        )
        found: dict[TopicName, MedusaError | None] = {}
        for name, future in futures.items():
            answer = self._answer(future, f"topic {name}")
            refused = isinstance(answer, MedusaError) and not isinstance(answer, TopicExistsError)
            found[TopicName(name)] = answer if refused else None
        return found

    def why_no_group(self, group: GroupName) -> MedusaError | None:
        """What the brokers have against our looking at a consumer group."""

        def ask() -> Any:
            asked = self._client.describe_consumer_groups([group], request_timeout=self._timeout_s)
            return self._answer(asked[group], f"group {group}")

        answer = settled(ask, SystemClock(), self._timeout_s)
        return answer if isinstance(answer, MedusaError) else None

    def why_no_transactions(self, transactional_id: TransactionalId) -> MedusaError | None:
        """What the brokers have against transactions of an id that is nobody else's."""
        writer = TransactionalWriter(self._brokers, transactional_id)
        try:
            writer.start(Deadline.after(SystemClock(), self._timeout_s, "starting transactions"))
        except MedusaError as error:
            return error
        finally:
            writer.close()
        return None

    def _answer(self, future: "Future[Any]", detail: str) -> Any:
        place = f"Kafka {self._brokers}, {detail}"
        try:
            return future.result(self._timeout_s + 1.0)
        except KafkaException as error:
            return medusa_error(error, place)
        except TimeoutError:
            return UnavailableError("Kafka did not answer in time", place=place)


def settled(ask: Callable[[], T], clock: Clock, within_s: float) -> T:
    """What brokers say once they do not say any more that they are to be asked again.

    They do for some seconds after their first start. When the time is over, that is the answer.
    """
    deadline = Deadline.after(clock, within_s, "asking the brokers")
    while isinstance(answer := ask(), RetryError) and not deadline.passed:
        clock.sleep(AGAIN_AFTER_S)
    return answer
