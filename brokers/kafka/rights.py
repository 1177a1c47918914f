"""Authorization checks: the operations that the brokers allow to us. They change nothing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import astuple
from typing import Any, TypeVar

from confluent_kafka import KafkaException, Node, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported unmarked
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from brokers.kafka.config import client_config
from brokers.kafka.errors import NoAccessListsError, medusa_error
from brokers.kafka.servers import KafkaServers
from brokers.kafka.transactions import TransactionalWriter
from brokers.kafka_interface import NoSuchTopicError, TopicExistsError
from brokers.records import NewTopicSpec, TopicRule
from pipeline.clock import Clock, Deadline
from pipeline.errors import MedusaError, NotAllowedError, RetryError, UnavailableError
from pipeline.ids import GroupName, TopicName, TransactionalId
from pipeline.system_clock import SystemClock

RETRY_S = 0.2
_AUTHORIZER = "authorizer.class.name"
_ANY: Any = None  # the driver's stubs do not allow None
T = TypeVar("T")


class KafkaRights:
    """Queries the operations that a user may do. A query that fails returns its error."""

    def __init__(self, brokers: KafkaServers, timeout_s: float) -> None:
        self._brokers = brokers
        self._timeout_s = timeout_s
        self._client = AdminClient(client_config(brokers))

    def on_topics(
        self, topics: Iterable[TopicName]
    ) -> Mapping[TopicName, frozenset[str] | MedusaError]:
        """The allowed operations, by Kafka's names, on those topics that exist."""
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

    def topic_rules(self) -> tuple[TopicRule, ...] | MedusaError:
        """The access control entries about topics, of all principals; sorted.

        `NoAccessListsError`: there are none. `NotAllowedError`: we may not read them. The driver
        returns an empty list in both cases, so other requests distinguish them.
        """
        place = f"Kafka {self._brokers}, access control lists"
        described = self._client.describe_cluster(
            include_authorized_operations=True, request_timeout=self._timeout_s
        )
        cluster = self._answer(described, "access control lists")
        if isinstance(cluster, MedusaError):
            return cluster
        ours = frozenset(one.name for one in cluster.authorized_operations or ())
        if "DESCRIBE" not in ours:
            return NotAllowedError("Kafka does not let us read them", place=place)
        every = AclBindingFilter(
            restype=ResourceType.TOPIC,
            name=_ANY,
            resource_pattern_type=ResourcePatternType.ANY,
            principal=_ANY,
            host=_ANY,
            operation=AclOperation.ANY,
            permission_type=AclPermissionType.ANY,
        )
        future = self._client.describe_acls(every, request_timeout=self._timeout_s)
        answer = self._answer(future, "access control lists")
        if isinstance(answer, MedusaError):
            return answer
        if not answer and "DESCRIBE_CONFIGS" in ours and not self._has_authorizer(cluster.nodes):
            return NoAccessListsError("the brokers keep no access control lists", place=place)
        rules = (
            TopicRule(
                topics=one.name,
                prefixed=one.resource_pattern_type is ResourcePatternType.PREFIXED,
                principal=one.principal,
                host=one.host,
                operation=one.operation.name,
                allows=one.permission_type is AclPermissionType.ALLOW,
            )
            for one in answer
        )
        return tuple(sorted(rules, key=astuple))

    def _has_authorizer(self, nodes: Sequence[Node]) -> bool:
        """Whether the brokers have an authorizer; True if their settings cannot be read."""
        resources = [ConfigResource(ResourceType.BROKER, str(node.id)) for node in nodes[:1]]
        futures = self._client.describe_configs(resources, request_timeout=self._timeout_s)
        answers = [self._answer(future, "its settings") for future in futures.values()]
        read = [one for one in answers if not isinstance(one, MedusaError) and _AUTHORIZER in one]
        return not read or any(one[_AUTHORIZER].value for one in read)

    def why_not_created(
        self, specs: Iterable[NewTopicSpec]
    ) -> Mapping[TopicName, MedusaError | None]:
        """Per topic the error that its creation would have, from a request that only validates."""
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
        """The error of describing a consumer group; None if it is allowed."""

        def describe() -> Any:
            sent = self._client.describe_consumer_groups([group], request_timeout=self._timeout_s)
            return self._answer(sent[group], f"group {group}")

        answer = retried(describe, SystemClock(), self._timeout_s)
        return answer if isinstance(answer, MedusaError) else None

    def why_no_transactions(self, transactional_id: TransactionalId) -> MedusaError | None:
        """The error of starting transactions with an otherwise unused id; None if it is allowed."""
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


def retried(request: Callable[[], T], clock: Clock, within_s: float) -> T:
    """Repeat a request while its result is a `RetryError`; at the deadline, return that error.

    Brokers answer so for some seconds after their first start.
    """
    deadline = Deadline.after(clock, within_s, "asking the brokers")
    while isinstance(answer := request(), RetryError) and not deadline.passed:
        clock.sleep(RETRY_S)
    return answer
