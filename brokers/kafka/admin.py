"""Administration of the topics and groups of a Kafka cluster: a `TopicAdmin`.

Every call has one deadline for all its requests and raises `UnavailableError` when the brokers do
not answer within it.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, TypeVar

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported unmarked
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from brokers.kafka.asked_twice import AskedTwice
from brokers.kafka.config import client_config
from brokers.kafka.errors import CREDENTIALS_REJECTED, medusa_error
from brokers.kafka.offset_answers import earliest, latest, offset_in
from brokers.kafka.renewed_client import RenewedClient
from brokers.kafka.servers import Brokers, servers
from brokers.kafka_interface import (
    Describing,
    Isolation,
    NoSuchGroupError,
    NoSuchTopicError,
    NotNowError,
    TopicExistsError,
)
from brokers.reach import connection_problem, require_tls
from brokers.records import Ends, NewTopicSpec, TopicDescription
from pipeline.clock import Clock, Deadline
from pipeline.errors import RetryError, UnavailableError
from pipeline.ids import GroupName, Millis, Offset, TopicName
from pipeline.system_clock import SystemClock

T = TypeVar("T")

POLL_S: Final = 0.05
"""Interval of the polls whether a created topic is usable, or a deleted one gone."""
DEFAULT_PORT: Final = 9092
_SLACK_S: Final = 1.0
"""Added to the driver's own timeout; only a bug of the driver exceeds it."""
_NO_LEADER: Final = -1


_LEVELS: Final = {
    Isolation.COMMITTED: IsolationLevel.READ_COMMITTED,
    Isolation.UNCOMMITTED: IsolationLevel.READ_UNCOMMITTED,
}


class KafkaAdmin:
    """An administrative connection: a `TopicAdmin`, thread-safe."""

    def __init__(self, brokers: Brokers, timeout_s: float, clock: Clock | None = None) -> None:
        self._servers = servers(brokers)
        self._timeout_s = timeout_s
        self._clock = clock or SystemClock()
        self._refused: KafkaError | None = None
        config = client_config(brokers, socket_timeout_ms=max(10, int(timeout_s * 1000)))
        # The driver's stubs allow plain values only.
        settings: dict[str, Any] = {**config, "error_cb": self._on_error}
        self._renewed = RenewedClient(partial(AdminClient, settings), self._clock)

    @property
    def _client(self) -> AdminClient:
        return self._renewed.current

    def cluster_id(self) -> str:
        """The id of the cluster; also the cheapest check that a broker answers and accepts us.

        Fails without delay when no address accepts a connection, or the credentials are rejected.

        Raises:
            RefusedError: the brokers do not accept our credentials, or one side does not trust the
                certificate of the other.
        """
        deadline = self._deadline("asking for the cluster id")
        problem = connection_problem(self._servers.bootstrap, DEFAULT_PORT, self._timeout_s)
        if problem:
            raise UnavailableError(
                f"no broker can be reached: {problem}",
                place=self._place(""),
                hint="is it running, and is KAFKA_BOOTSTRAP_SERVERS its address?",
            )
        if self._servers.tls is not None:
            require_tls(
                self._servers.bootstrap, DEFAULT_PORT, self._timeout_s, self._servers.tls, "kafka"
            )
        future = self._client.describe_cluster(request_timeout=deadline.remaining_s())
        while self._refused is None and not future.done() and not deadline.passed:
            self._client.poll(POLL_S)
        if self._refused is not None:
            raise medusa_error(self._refused, self._place(""))
        return str(self._wait(future, deadline, "").cluster_id)

    def topic_names(self) -> tuple[TopicName, ...]:
        """All topics of the cluster that are not Kafka's own, sorted."""
        try:
            found = self._client.list_topics(timeout=self._timeout_s)
        except KafkaException as error:
            raise medusa_error(error, self._place("")) from error
        return tuple(sorted(TopicName(name) for name in found.topics if name[:2] != "__"))

    def create_topics(self, topics: tuple[NewTopicSpec, ...]) -> tuple[TopicName, ...]:
        """Create the topics that do not exist, and wait until every topic can be written to."""
        if not topics:
            return ()
        deadline = self._deadline("creating topics")
        names = tuple(spec.name for spec in topics)
        existing = self._describe(names, deadline)
        missing = tuple(spec for spec in topics if spec.name not in existing)
        created = self._create(missing, deadline)
        while not self._all_usable(names, deadline):
            deadline.check("the brokers may be overloaded; run it again.")
            self._clock.sleep(POLL_S)
        return created

    def describe(self, topics: Iterable[TopicName]) -> Mapping[TopicName, TopicDescription]:
        """Id, number of partitions and replication of those topics that exist."""
        return self._describe(tuple(topics), self._deadline("describing topics"))

    def begin_describing(self, topics: Iterable[TopicName]) -> Describing:
        """Send the request; `result` waits for the driver's futures."""
        names, deadline = tuple(topics), self._deadline("describing topics")
        asked = self._begin_describe(names, deadline)
        return Describing(
            done=lambda: asked.done,
            result=lambda: _descriptions(self._answers(names, asked, deadline)),
        )

    def topic_configs(self, topics: Iterable[TopicName]) -> Mapping[TopicName, Mapping[str, str]]:
        """All effective settings of those topics that exist, defaults included."""
        deadline = self._deadline("reading topic settings")
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
        if not resources:
            return {}
        futures = self._client.describe_configs(resources, request_timeout=deadline.remaining_s())
        found: dict[TopicName, Mapping[str, str]] = {}
        for resource, future in futures.items():
            name = TopicName(str(resource.name))
            try:
                entries = self._wait(future, deadline, f"topic {name}")
            except NoSuchTopicError:
                continue
            found[name] = {key: str(entry.value) for key, entry in entries.items()}
        return found

    def end_offsets(
        self, topics: Iterable[TopicName], isolation: Isolation = Isolation.COMMITTED
    ) -> Ends:
        """End of each partition; omits topics that do not exist or have no leader now."""
        return self._offsets(topics, latest(), isolation, "reading end offsets")

    def partition_ends(
        self, topic: TopicName, partitions: int, isolation: Isolation
    ) -> Mapping[int, Offset]:
        """Ends of the partitions of one topic: one request."""
        deadline = self._deadline("reading end offsets")
        specs = {TopicPartition(topic, partition): latest() for partition in range(partitions)}
        found = self._list(specs, isolation, deadline).get(topic)
        if found is None:
            raise NotNowError(
                "the end offsets are not available now", place=self._place(f"topic {topic}")
            )
        return found

    def await_decided(self, topic: TopicName) -> bool:
        """Poll until the last stable offsets reach the present log ends, or the deadline."""
        deadline = self._deadline("waiting for open transactions")
        written: Mapping[int, Offset] = {}
        while True:
            written = written or self.end_offsets((topic,), Isolation.UNCOMMITTED).get(topic, {})
            decided = self.end_offsets((topic,)).get(topic, {})
            reached = (decided.get(partition, -1) >= end for partition, end in written.items())
            if written and all(reached):
                return True
            if deadline.passed:
                return False
            self._clock.sleep(POLL_S)

    def start_offsets(self, topics: Iterable[TopicName]) -> Ends:
        """The oldest offset of each partition; omits topics as `end_offsets` does."""
        return self._offsets(topics, earliest(), Isolation.UNCOMMITTED, "reading start offsets")

    def offsets_for_time(self, topic: TopicName, time_ms: Millis) -> Mapping[int, Offset]:
        """Per partition the offset of the first record at or after a time, or the committed end."""
        spec = OffsetSpec.for_timestamp(max(0, time_ms))
        found = self._offsets((topic,), spec, Isolation.COMMITTED, "reading offsets by time")
        ends = self.end_offsets((topic,))
        if topic not in found or topic not in ends:
            raise NoSuchTopicError("the topic does not exist", place=self._place(f"topic {topic}"))
        return {
            partition: offset if offset >= 0 else ends[topic].get(partition, Offset(0))
            for partition, offset in found[topic].items()
        }

    def delete_topics(self, topics: Iterable[TopicName]) -> tuple[TopicName, ...]:
        """Delete topics, and wait until they are gone; returns the names of those that existed."""
        names = tuple(topics)
        if not names:
            return ()
        deadline = self._deadline("deleting topics")
        futures = self._client.delete_topics([*names], operation_timeout=deadline.remaining_s())
        gone: list[TopicName] = []
        for name in names:
            try:
                self._wait(futures[name], deadline, f"topic {name}")
            except NoSuchTopicError:
                continue
            gone.append(name)
        while self._describe(tuple(gone), deadline):
            deadline.check("the brokers may be overloaded; run it again.")
            self._clock.sleep(POLL_S)
        return tuple(gone)

    def delete_records(self, topic: TopicName, before: Mapping[int, Offset]) -> None:
        """Delete the records below an offset in each of some partitions."""
        deadline = self._deadline("removing records")
        offsets = [TopicPartition(topic, part, offset) for part, offset in sorted(before.items())]
        if not offsets:
            return
        futures = self._client.delete_records(
            offsets,
            request_timeout=deadline.remaining_s(),
            operation_timeout=deadline.remaining_s(),
        )
        for place, future in futures.items():
            self._wait(future, deadline, f"topic {topic}, partition {place.partition}")

    def delete_group(self, group: GroupName) -> bool:
        """Delete a consumer group without members; False if there is none of this name."""
        deadline = self._deadline("deleting a group")
        while True:
            futures = self._client.delete_consumer_groups(
                [group], request_timeout=deadline.remaining_s()
            )
            try:
                self._wait(futures[group], deadline, f"group {group}")
            except NoSuchGroupError:
                return False
            except RetryError:  # a coordinator that has just started loads its groups first
                if deadline.passed:
                    raise
                self._clock.sleep(POLL_S)
            else:
                return True

    def _create(self, specs: tuple[NewTopicSpec, ...], deadline: Deadline) -> tuple[TopicName, ...]:
        if not specs:
            return ()
        new = [
            NewTopic(spec.name, spec.partitions, spec.replication, config=dict(spec.config))
            for spec in specs
        ]
        futures = self._client.create_topics(new, operation_timeout=deadline.remaining_s())
        created: list[TopicName] = []
        for spec in specs:
            try:
                self._wait(futures[spec.name], deadline, f"topic {spec.name}")
            except TopicExistsError:
                continue  # another client created it since the description was read
            created.append(spec.name)
        return tuple(created)

    def _all_usable(self, topics: tuple[TopicName, ...], deadline: Deadline) -> bool:
        """Whether every leader answers; metadata contain a leader before it serves requests."""
        return self._ends(topics, latest(), Isolation.COMMITTED, deadline).keys() >= set(topics)

    def _describe(
        self, topics: tuple[TopicName, ...], deadline: Deadline
    ) -> dict[TopicName, TopicDescription]:
        return _descriptions(self._describe_raw(topics, deadline))

    def _describe_raw(
        self, topics: tuple[TopicName, ...], deadline: Deadline
    ) -> dict[TopicName, Any]:
        return self._answers(topics, self._begin_describe(topics, deadline), deadline)

    def _begin_describe(
        self, topics: tuple[TopicName, ...], deadline: Deadline
    ) -> AskedTwice[AdminClient]:
        def ask(client: AdminClient) -> "Mapping[str, Future[Any]]":
            if not topics:
                return {}
            found: Mapping[str, Future[Any]] = client.describe_topics(
                TopicCollection(sorted(set(topics))), request_timeout=deadline.remaining_s()
            )
            return found

        return AskedTwice(self._renewed, ask, deadline)

    def _answers(
        self,
        topics: tuple[TopicName, ...],
        asked: AskedTwice[AdminClient],
        deadline: Deadline,
    ) -> dict[TopicName, Any]:
        futures = asked.answers()
        found: dict[TopicName, Any] = {}
        for name in topics:
            try:
                found[name] = self._wait(futures[name], deadline, f"topic {name}")
            except NoSuchTopicError:
                continue
            except UnavailableError:
                self._renewed.note(answered=False)
                raise
        self._renewed.note(answered=True)
        return found

    def _offsets(
        self, topics: Iterable[TopicName], spec: OffsetSpec, isolation: Isolation, what: str
    ) -> dict[TopicName, dict[int, Offset]]:
        return self._ends(tuple(topics), spec, isolation, self._deadline(what))

    def _ends(
        self,
        topics: tuple[TopicName, ...],
        spec: OffsetSpec,
        isolation: Isolation,
        deadline: Deadline,
    ) -> dict[TopicName, dict[int, Offset]]:
        specs = _offset_specs(self._describe_raw(topics, deadline), spec)
        return self._list(specs, isolation, deadline) if specs else {}

    def _list(
        self,
        specs: Mapping[TopicPartition, OffsetSpec],
        isolation: Isolation,
        deadline: Deadline,
    ) -> dict[TopicName, dict[int, Offset]]:
        futures: dict[TopicPartition, Future[Any]] = self._client.list_offsets(
            dict(specs), isolation_level=_LEVELS[isolation], request_timeout=deadline.remaining_s()
        )
        found: dict[TopicName, dict[int, Offset]] = {}
        failed: set[TopicName] = set()
        for place, future in futures.items():
            name = TopicName(place.topic)
            try:
                answer = self._wait(future, deadline, f"topic {name}, partition {place.partition}")
            except (NoSuchTopicError, RetryError):
                failed.add(name)
                continue
            offset = offset_in(answer.offset)
            if offset is None:
                failed.add(name)
                continue
            found.setdefault(name, {})[place.partition] = offset
        return {name: ends for name, ends in found.items() if name not in failed}

    def _deadline(self, what: str) -> Deadline:
        return Deadline.after(self._clock, self._timeout_s, what)

    def _on_error(self, error: KafkaError) -> None:
        """Store rejected credentials: the driver reports them by callback, and keeps retrying."""
        if error.code() in CREDENTIALS_REJECTED:
            self._refused = error

    def _place(self, detail: str) -> str:
        return f"Kafka {self._servers}, {detail}" if detail else f"Kafka {self._servers}"

    def _wait(self, future: "Future[T]", deadline: Deadline, detail: str) -> T:
        try:
            return future.result(deadline.remaining_s() + _SLACK_S)
        except KafkaException as error:
            raise medusa_error(error, self._place(detail)) from error
        except TimeoutError as error:
            raise UnavailableError(
                f"{deadline.what}: Kafka did not answer in time", place=self._place(detail)
            ) from error


def _descriptions(raw: Mapping[TopicName, Any]) -> dict[TopicName, TopicDescription]:
    return {
        name: TopicDescription(
            name,
            str(found.topic_id),
            len(found.partitions),
            min((len(one.replicas) for one in found.partitions), default=0),
        )
        for name, found in raw.items()
    }


def _offset_specs(
    described: Mapping[TopicName, Any], spec: OffsetSpec
) -> dict[TopicPartition, OffsetSpec]:
    """An offset request for every partition of those topics whose partitions all have leaders."""
    return {
        TopicPartition(name, partition.id): spec
        for name, topic in described.items()
        if _usable(topic)
        for partition in topic.partitions
    }


def _usable(topic: Any) -> bool:
    """Whether every partition has a leader; a topic has none right after it was created."""
    return all(
        part.leader is not None and part.leader.id != _NO_LEADER for part in topic.partitions
    )
