"""Requests of an ends reader to Kafka: descriptions of topics, and end offsets of one leader.

Requests are answered in the driver's own threads; nothing has to be polled.

The driver's `list_offsets` can end the process with a segmentation fault. That was seen with
leaders that move; the driver was then searching, in the calling thread, for leaders that its cache
lacks, which must not coincide with the arrival of metadata. A description fills the cache, and an
error about a leader removes from it. So after an error, or no answer, the end offsets of that
leader are not requested before the next description: `KnownLeaders.doubt`.
"""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, wait
from contextlib import ExitStack
from typing import Any, Final

from confluent_kafka import (
    OFFSET_END,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from brokers.kafka.config import client_config
from brokers.kafka.errors import medusa_error, translated
from brokers.kafka.leaders import Found, Group, LeaderAnswer, TopicLeaders
from brokers.kafka.offset_answers import offset_in
from brokers.kafka.servers import Brokers
from brokers.kafka_interface import NoSuchTopicError, Place
from pipeline.ids import Offset, TopicName

GIVE_UP_S: Final = 5.0
"""How long the driver waits for an answer; then it drops the connection to that broker, and can
get metadata from another one."""
DESCRIBE_S: Final = 2.0
"""The same for a description; the next one may be sent to another broker."""
_NO_LEADER: Final = -1
_MOVED: Final = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError._NOENT,  # noqa: SLF001 - the driver's name: no partition has a leader
    }
)
"""Errors after which the leader of a partition may be another broker, or the partition gone."""


class _Client(AdminClient):
    """An admin client that answers a request about many partitions in one future.

    The method of the driver makes a future for each partition, which doubles the CPU time.
    """

    def list_ends(
        self, places: list[TopicPartition], isolation: IsolationLevel
    ) -> "Future[dict[TopicPartition, Any]]":
        """The result by partition: an offset with details, or a `KafkaError`."""
        future: Future[dict[TopicPartition, Any]] = Future()
        future.set_running_or_notify_cancel()
        super(AdminClient, self).list_offsets(
            places, future, isolation_level_value=isolation.value, request_timeout=GIVE_UP_S
        )
        return future


class AskedTopics:
    """A pending description of topics."""

    def __init__(self, futures: "Mapping[str, Future[Any]]") -> None:
        self._futures = futures

    def wait(self, timeout_s: float) -> bool:
        """Whether it has ended, after at most this time."""
        return not wait(self._futures.values(), timeout_s).not_done

    def take(self) -> tuple[Found, str]:
        """The topics that were described, and the error about the first other one, or nothing."""
        found: dict[TopicName, TopicLeaders | None] = {}
        problem = ""
        for name, future in self._futures.items():
            try:
                described = future.result(0)
            except KafkaException as error:
                translation = medusa_error(error, f"topic {name}")
                if isinstance(translation, NoSuchTopicError):
                    found[TopicName(name)] = None
                problem = problem or ("" if name in found else str(translation))
            else:
                found[TopicName(name)] = _leaders(described)
        return found, problem


class AskedEnds:
    """A pending request to a leader: last stable offsets, then log end offsets.

    A broker answers the requests of a connection in their order, so that these are never lower.
    """

    def __init__(
        self,
        stable: "Future[dict[TopicPartition, Any]]",
        written: "Future[dict[TopicPartition, Any]]",
    ) -> None:
        self._both = (stable, written)

    def wait(self, timeout_s: float) -> bool:
        """Whether both answers have arrived, after at most this time."""
        ends_at_s = time.monotonic() + timeout_s
        for future in self._both:  # one after the other: cheaper than `wait`
            if not future.done():
                try:
                    future.exception(max(0.0, ends_at_s - time.monotonic()))
                except TimeoutError:
                    return False
        return True

    def take(self) -> LeaderAnswer:
        """The answers."""
        (stable, first, epochs), (written, second, _) = map(_offsets, self._both)
        if stable.keys() != written.keys():
            both = stable.keys() & written.keys()
            stable = {place: stable[place] for place in both}
            written = {place: written[place] for place in both}
        errors = (*first, *second)
        return LeaderAnswer(
            stable,
            written,
            # The codes of errors that the driver itself returns are negative.
            answered=bool(stable) or any(error.code() > 0 for error in errors),
            moved=any(error.code() in _MOVED for error in errors),
            problem=next((_words(error) for error in errors if _is_unexpected(error)), ""),
            epochs={place: epoch for place, epoch in epochs.items() if place in stable},
        )


class EndsRequests:
    """A connection of its own for these requests. Not thread-safe; close it."""

    def __init__(self, brokers: Brokers) -> None:
        config = client_config(brokers, socket_timeout_ms=int(GIVE_UP_S * 1000))
        self._open = ExitStack()
        with translated("Kafka"):
            self._client = self._open.enter_context(_Client(config))
        self._places: dict[int, tuple[Group, list[TopicPartition]]] = {}

    def describe(self, topics: Iterable[TopicName]) -> AskedTopics:
        """Request the leaders of topics. The driver then sends requests to these leaders, too."""
        collection = TopicCollection(sorted(topics))
        with translated("describing topics"):
            return AskedTopics(self._client.describe_topics(collection, request_timeout=DESCRIBE_S))

    def ask(self, group: Group) -> AskedEnds:
        """Request the ends of a leader's partitions."""
        asked, places = self._places.get(group.leader, (None, []))
        if asked is not group:
            places = [TopicPartition(topic, part, OFFSET_END) for topic, part in group.places]
            self._places[group.leader] = (group, places)
        with translated("reading end offsets"):
            return AskedEnds(
                self._client.list_ends(places, IsolationLevel.READ_COMMITTED),
                self._client.list_ends(places, IsolationLevel.READ_UNCOMMITTED),
            )

    def close(self) -> None:
        """Close the connection; pending requests end with an error."""
        self._open.close()


def _leaders(described: Any) -> TopicLeaders:
    leaders = {
        part.id: None if part.leader is None or part.leader.id == _NO_LEADER else part.leader.id
        for part in described.partitions
    }
    return TopicLeaders(str(described.topic_id), leaders)


def _offsets(
    future: "Future[dict[TopicPartition, Any]]",
) -> tuple[dict[Place, Offset], list[KafkaError], dict[Place, int]]:
    """The offsets by partition, the errors, and the leader epochs that are known."""
    try:
        results = future.result(0)
    except KafkaException as error:
        return {}, [error.args[0]], {}
    found: dict[Place, Offset] = {}
    errors: list[KafkaError] = []
    epochs: dict[Place, int] = {}
    for place, result in results.items():
        at = TopicName(place.topic), place.partition
        if isinstance(result, KafkaError):
            errors.append(result)
        elif (offset := offset_in(result.offset)) is not None:  # none: not answered in time
            found[at] = offset
            if result.leader_epoch is not None:
                epochs[at] = result.leader_epoch
    return found, errors, epochs


def _is_unexpected(error: KafkaError) -> bool:
    return error.code() > 0 and error.code() not in _MOVED


def _words(error: KafkaError) -> str:
    return str(medusa_error(error))
