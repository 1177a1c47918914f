"""Translation of the Kafka driver's errors into Medusa's, by table; no other module does it.

Use `with translated("reading topic car-sightings"):` around calls of the driver, and
`medusa_error` for errors that the driver returns as values.
"""

# ruff: noqa: SLF001 - the names of the error codes of the driver itself begin with an underscore
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message

from brokers.kafka_interface import (
    GaveUpError,
    NoSuchGroupError,
    NoSuchTopicError,
    NotNowError,
    OffsetGoneError,
    RecordTooLargeError,
    TopicExistsError,
)
from brokers.records import MADE_AGAIN
from pipeline.errors import (
    BrokenInvariantError,
    EnvironmentProblem,
    FencedError,
    MedusaError,
    NotAllowedError,
    RefusedError,
    RetryError,
    UnavailableError,
)


class NoAccessListsError(RefusedError):
    """The brokers have no access control lists: every client may do everything."""

    code = "no-access-lists"


_Row = tuple[type[MedusaError], str, str]

_DOWN: Final[_Row] = (
    UnavailableError,
    "Kafka does not answer",
    "is the broker running, and is kafka.bootstrap_servers right?",
)
_MACHINE: Final[_Row] = (EnvironmentProblem, "the Kafka client lacks something on this machine", "")
_FENCED_ROW: Final[_Row] = (FencedError, "another instance has taken over", "")
_AGAIN: Final[_Row] = (RetryError, "Kafka asks to try again", "")
_NOT_NOW: Final[_Row] = (NotNowError, "Kafka cannot do it now", "")
_ANEW: Final[_Row] = (RetryError, "the Kafka client cannot go on and has to be started anew", "")
_NO_TOPIC: Final[_Row] = (NoSuchTopicError, "the topic does not exist", "")
_NOT_ALLOWED: Final[_Row] = (
    NotAllowedError,
    "Kafka does not allow this to us",
    "an administrator of the cluster can give kafka.user the right, in its access control lists.",
)
_LOGIN: Final[_Row] = (
    NotAllowedError,
    "Kafka does not accept our credentials",
    "check kafka.user, kafka.password and kafka.sasl_mechanism.",
)
_TOO_LARGE: Final[_Row] = (
    RecordTooLargeError,
    "the record is larger than Kafka takes",
    "raise max.message.bytes of the topic, or send smaller records.",
)
_GONE: Final[_Row] = (
    OffsetGoneError,
    "the offset is not in the topic any more",
    f"retention removed it, or the topic {MADE_AGAIN}.",
)

_ROOM_BYTES: Final = 65_536
"""Room for Kafka's overhead per record, and for headers of usual size."""

_TABLE: Final[dict[int, _Row]] = {
    KafkaError._TRANSPORT: _DOWN,
    KafkaError._ALL_BROKERS_DOWN: _DOWN,
    KafkaError._RESOLVE: _DOWN,
    KafkaError._TIMED_OUT: _DOWN,
    KafkaError._TIMED_OUT_QUEUE: _DOWN,
    KafkaError._MSG_TIMED_OUT: (
        UnavailableError,
        "Kafka did not take the record in time",
        "is the broker running, and is kafka.bootstrap_servers right?",
    ),
    KafkaError._WAIT_COORD: _DOWN,
    KafkaError._SSL: _DOWN,
    KafkaError.NETWORK_EXCEPTION: _DOWN,
    KafkaError.REQUEST_TIMED_OUT: _DOWN,
    KafkaError.BROKER_NOT_AVAILABLE: _DOWN,
    KafkaError.LEADER_NOT_AVAILABLE: _DOWN,
    # No partition of the request has a leader: the brokers have just started.
    KafkaError._NOENT: _DOWN,
    # The driver's metadata changed while it waited for an answer.
    KafkaError._DESTROY_BROKER: _AGAIN,
    KafkaError._UNKNOWN_BROKER: _AGAIN,
    KafkaError._NODE_UPDATE: _AGAIN,
    KafkaError._WAIT_CACHE: _AGAIN,
    KafkaError._OUTDATED: _AGAIN,
    KafkaError.REPLICA_NOT_AVAILABLE: _DOWN,
    KafkaError.COORDINATOR_NOT_AVAILABLE: _DOWN,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS: _NOT_NOW,
    KafkaError.NOT_LEADER_FOR_PARTITION: _NOT_NOW,
    KafkaError.NOT_COORDINATOR: _NOT_NOW,
    KafkaError.UNKNOWN_LEADER_EPOCH: _NOT_NOW,
    KafkaError.FENCED_LEADER_EPOCH: _NOT_NOW,
    KafkaError.NOT_CONTROLLER: _NOT_NOW,
    KafkaError.NOT_ENOUGH_REPLICAS: _NOT_NOW,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND: _NOT_NOW,
    KafkaError.OFFSET_NOT_AVAILABLE: _NOT_NOW,
    KafkaError.CONCURRENT_TRANSACTIONS: _NOT_NOW,
    KafkaError.THROTTLING_QUOTA_EXCEEDED: _NOT_NOW,
    KafkaError.TRANSACTION_ABORTABLE: _NOT_NOW,
    # A broker that was killed may have ended the transaction without sending the answer.
    KafkaError.INVALID_TXN_STATE: _NOT_NOW,
    KafkaError._ISR_INSUFF: _NOT_NOW,
    KafkaError.UNKNOWN: _NOT_NOW,  # an exception inside the broker
    KafkaError.KAFKA_STORAGE_ERROR: _NOT_NOW,
    KafkaError.LOG_DIR_NOT_FOUND: _NOT_NOW,
    KafkaError.REASSIGNMENT_IN_PROGRESS: _NOT_NOW,
    KafkaError.UNSTABLE_OFFSET_COMMIT: _NOT_NOW,
    KafkaError.REBOOTSTRAP_REQUIRED: _NOT_NOW,
    KafkaError._QUEUE_FULL: _NOT_NOW,
    # The brokers' state of a producer is lost or does not match. A new producer has to start.
    KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER: _ANEW,
    KafkaError.DUPLICATE_SEQUENCE_NUMBER: _ANEW,
    KafkaError.INVALID_PRODUCER_ID_MAPPING: _ANEW,
    KafkaError.UNKNOWN_PRODUCER_ID: _ANEW,
    KafkaError.INVALID_MSG: _ANEW,
    KafkaError._FATAL: _ANEW,
    KafkaError._STATE: _ANEW,
    KafkaError._INCONSISTENT: _ANEW,
    KafkaError._GAPLESS_GUARANTEE: _ANEW,
    KafkaError._FAIL: _ANEW,
    KafkaError._DESTROY: _ANEW,
    KafkaError._CRIT_SYS_RESOURCE: _MACHINE,
    KafkaError._FS: _MACHINE,
    KafkaError._CONFLICT: _AGAIN,
    KafkaError._PREV_IN_PROGRESS: _AGAIN,
    KafkaError._RETRY: _AGAIN,
    KafkaError._PURGE_QUEUE: _AGAIN,
    KafkaError._PURGE_INFLIGHT: _AGAIN,
    KafkaError._FENCED: _FENCED_ROW,
    KafkaError.PRODUCER_FENCED: _FENCED_ROW,
    KafkaError.INVALID_PRODUCER_EPOCH: _FENCED_ROW,
    KafkaError.TRANSACTION_COORDINATOR_FENCED: _FENCED_ROW,
    KafkaError.FENCED_INSTANCE_ID: _FENCED_ROW,
    KafkaError.UNKNOWN_TOPIC_OR_PART: _NO_TOPIC,
    KafkaError.UNKNOWN_TOPIC_ID: _NO_TOPIC,
    KafkaError.INCONSISTENT_TOPIC_ID: _NO_TOPIC,
    KafkaError._UNKNOWN_TOPIC: _NO_TOPIC,
    KafkaError._UNKNOWN_PARTITION: (NoSuchTopicError, "the partition does not exist", ""),
    KafkaError.TOPIC_ALREADY_EXISTS: (TopicExistsError, "the topic exists already", ""),
    KafkaError.TOPIC_EXCEPTION: (
        RefusedError,
        "Kafka does not accept the name of the topic",
        "letters, digits, dot, underscore and hyphen, at most 249 characters.",
    ),
    KafkaError.INVALID_PARTITIONS: (RefusedError, "Kafka does not accept that many partitions", ""),
    KafkaError.INVALID_REPLICATION_FACTOR: (
        RefusedError,
        "Kafka does not accept the replication factor",
        "it can be at most the number of brokers.",
    ),
    KafkaError.INVALID_CONFIG: (RefusedError, "Kafka does not accept a topic setting", ""),
    KafkaError.POLICY_VIOLATION: (RefusedError, "a policy of the cluster forbids this", ""),
    KafkaError.TOPIC_DELETION_DISABLED: (RefusedError, "the cluster forbids deleting topics", ""),
    KafkaError.GROUP_ID_NOT_FOUND: (NoSuchGroupError, "the consumer group does not exist", ""),
    KafkaError.NON_EMPTY_GROUP: (
        RefusedError,
        "the consumer group has members",
        "stop its consumers first.",
    ),
    KafkaError.OFFSET_OUT_OF_RANGE: _GONE,
    KafkaError._AUTO_OFFSET_RESET: _GONE,
    KafkaError._NO_OFFSET: _GONE,
    KafkaError.MSG_SIZE_TOO_LARGE: _TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE: _TOO_LARGE,
    KafkaError.INVALID_RECORD: (RefusedError, "Kafka does not accept the record", ""),
    KafkaError.INVALID_TIMESTAMP: (RefusedError, "Kafka does not accept the timestamp", ""),
    KafkaError.TOPIC_AUTHORIZATION_FAILED: _NOT_ALLOWED,
    KafkaError.GROUP_AUTHORIZATION_FAILED: _NOT_ALLOWED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: _NOT_ALLOWED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _NOT_ALLOWED,
    KafkaError.SECURITY_DISABLED: (
        NoAccessListsError,
        "the brokers keep no access control lists",
        "",
    ),
    KafkaError._AUTHENTICATION: _LOGIN,
    KafkaError.SASL_AUTHENTICATION_FAILED: _LOGIN,
    KafkaError.UNSUPPORTED_SASL_MECHANISM: _LOGIN,
}


CREDENTIALS_REJECTED: Final = frozenset(code for code, row in _TABLE.items() if row is _LOGIN)
"""Error codes that a retry cannot resolve."""


def medusa_error(error: KafkaError | KafkaException, place: str = "") -> MedusaError:
    """The error of ours for an error of the driver.

    Of the errors that are not in the table, those that the driver calls retriable, or that end with
    the transaction, become `NotNowError`; the others become `BrokenInvariantError`.
    """
    plain = _plain(error)
    if plain is None:
        return BrokenInvariantError(f"an unexpected error of Kafka: {error}", place=place)
    row = _TABLE.get(plain.code())
    if row is None and (plain.retriable() or plain.txn_requires_abort()):
        row = _NOT_NOW
    if row is None:
        return BrokenInvariantError(
            f"an unexpected error of Kafka: {plain.name()}: {plain.str()}", place=place
        )
    kind, words, hint = row
    return kind(f"{words} ({plain.str()})", place=place, hint=hint)


def undelivered(
    error: KafkaError, message: Message, before: str = "", headers: int = 0
) -> MedusaError:
    """The error of ours for the failed delivery of one record, with its topic and its size.

    Args:
        error: the reason of the failure.
        message: the record; the driver returns it without its headers.
        before: a prefix of the place in the error.
        headers: the maximum size of its headers in bytes.
    """
    place = f"{before}topic {message.topic()}"
    found = medusa_error(error, place)
    if not isinstance(found, RecordTooLargeError):
        return found
    size = len(message.value() or b"") + len(message.key() or b"")
    least, more = size + headers + _ROOM_BYTES, f", with headers of up to {headers} bytes,"
    return RecordTooLargeError(
        f"a record of {size} bytes{more if headers else ''} is larger than the topic takes",
        place=place,
        hint=f"raise `max.message.bytes` of the topic to {least} or more, with Kafka's own tool: "
        f"kafka-configs.sh --alter --entity-type topics --entity-name {message.topic()} "
        f"--add-config max.message.bytes={least}",
    )


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Raise the driver's errors in the block as ours, with the original as the cause."""
    try:
        yield
    except KafkaException as error:
        raise medusa_error(error, place) from error
    except SystemError as error:
        # A fatal error of a producer, such as fencing by another one with its id, may occur while
        # the driver waits: then it returns without a result and without an error.
        raise GaveUpError("Kafka's client gave up without an error", place=place) from error


def _plain(error: KafkaError | KafkaException) -> KafkaError | None:
    if isinstance(error, KafkaError):
        return error
    first = error.args[0] if error.args else None
    return first if isinstance(first, KafkaError) else None
