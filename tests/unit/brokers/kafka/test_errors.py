"""Translation of the driver's errors."""

from typing import cast

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from brokers.kafka.errors import NoAccessListsError, medusa_error, translated, undelivered
from brokers.kafka_interface import (
    NoSuchTopicError,
    NotNowError,
    OffsetGoneError,
    RecordTooLargeError,
    TopicExistsError,
)
from brokers.records import bytes_of
from pipeline.errors import (
    BrokenInvariantError,
    EnvironmentProblem,
    FencedError,
    MedusaError,
    NotAllowedError,
    RetryError,
    UnavailableError,
)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._TRANSPORT, UnavailableError),
        (KafkaError._ALL_BROKERS_DOWN, UnavailableError),
        (KafkaError._TIMED_OUT, UnavailableError),
        (KafkaError._MSG_TIMED_OUT, UnavailableError),
        (KafkaError._NOENT, UnavailableError),
        (KafkaError._FENCED, FencedError),
        (KafkaError.PRODUCER_FENCED, FencedError),
        (KafkaError.INVALID_PRODUCER_EPOCH, FencedError),
        (KafkaError.CONCURRENT_TRANSACTIONS, NotNowError),
        (KafkaError.INVALID_TXN_STATE, NotNowError),
        (KafkaError.NOT_LEADER_FOR_PARTITION, NotNowError),
        (KafkaError.NOT_ENOUGH_REPLICAS, NotNowError),
        (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, NotNowError),
        (KafkaError.KAFKA_STORAGE_ERROR, NotNowError),
        (KafkaError.THROTTLING_QUOTA_EXCEEDED, NotNowError),
        (KafkaError.UNKNOWN, NotNowError),
        (KafkaError.UNKNOWN_PRODUCER_ID, RetryError),
        (KafkaError._FS, EnvironmentProblem),
        (KafkaError._DESTROY_BROKER, RetryError),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, NoSuchTopicError),
        (KafkaError.TOPIC_ALREADY_EXISTS, TopicExistsError),
        (KafkaError._AUTO_OFFSET_RESET, OffsetGoneError),
        (KafkaError.MSG_SIZE_TOO_LARGE, RecordTooLargeError),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, NotAllowedError),
        (KafkaError.SECURITY_DISABLED, NoAccessListsError),
        (KafkaError.SASL_AUTHENTICATION_FAILED, NotAllowedError),
        (KafkaError._FATAL, RetryError),
        (KafkaError.INVALID_REQUEST, BrokenInvariantError),
    ],
)
def test_a_code_has_a_kind(code: int, kind: type[MedusaError]) -> None:
    """The kind determines the reaction; the place and the driver's message are kept."""
    found = medusa_error(KafkaError(code, "these words"), "topic t")
    assert type(found) is kind
    assert found.place == "topic t"
    assert "these words" in found.message


def test_retriable_errors_of_the_driver_are_retried() -> None:
    """Codes that the table does not contain use the driver's own flags."""
    retriable = KafkaError(KafkaError.INVALID_REQUEST, "x", retriable=True)
    aborting = KafkaError(KafkaError.INVALID_REQUEST, "x", txn_requires_abort=True)
    assert type(medusa_error(retriable)) is NotNowError
    assert type(medusa_error(aborting)) is NotNowError


class Refused:
    """A refused record as the driver returns it: without its headers."""

    def topic(self) -> str:
        """The topic of the record."""
        return "n.f.dlq"

    def value(self) -> bytes:
        """Five megabytes."""
        return b"v" * 5_000_000

    def key(self) -> None:
        """No key."""


def test_a_too_large_record_counts_with_its_headers() -> None:
    """Otherwise the recommended limit may be below the present one."""
    error, record = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), cast("Message", Refused())
    plain = undelivered(error, record)
    assert plain.message == "a record of 5000000 bytes is larger than the topic takes"
    assert "max.message.bytes=5065536" in plain.hint
    held = undelivered(error, record, headers=bytes_of((("held", b"h" * 4_000_000), ("é", None))))
    assert "of 5000000 bytes, with headers of up to 4000006 bytes, is larger" in held.message
    assert "max.message.bytes=9065542" in held.hint


OUTAGE = (
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._MSG_TIMED_OUT,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.INVALID_TXN_STATE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.THROTTLING_QUOTA_EXCEEDED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError._AUTHENTICATION,
)


@pytest.mark.parametrize("code", OUTAGE)
def test_errors_of_an_unreachable_broker_are_external(code: int) -> None:
    """So no number of them in a row fails a lane permanently."""
    assert medusa_error(KafkaError(code, "x")).external


@pytest.mark.parametrize(
    "code",
    [KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.PRODUCER_FENCED, KafkaError._AUTO_OFFSET_RESET],
)
def test_errors_that_need_a_decision_are_not_external(code: int) -> None:
    """A record that is too large, another owner, deleted records."""
    assert not medusa_error(KafkaError(code, "x")).external


def test_the_original_is_the_cause() -> None:
    """The driver's error is kept for diagnosis."""
    original = KafkaException(KafkaError(KafkaError._TRANSPORT))
    with pytest.raises(UnavailableError) as caught, translated("topic t"):
        raise original
    assert caught.value.__cause__ is original
    assert caught.value.place == "topic t"


def test_an_exception_without_an_error_is_unexpected() -> None:
    """A driver exception without a code is translated, too."""
    assert type(medusa_error(KafkaException("odd"))) is BrokenInvariantError


def test_a_call_without_a_result_and_without_an_error_is_retried() -> None:
    """The driver reports its cause in another call, if at all."""
    original = SystemError("<method 'flush'> returned NULL without setting an exception")
    with pytest.raises(RetryError) as caught, translated("committing"):
        raise original
    assert caught.value.__cause__ is original
    assert caught.value.place == "committing"


def test_other_errors_pass() -> None:
    """Only the driver's errors are translated."""
    with pytest.raises(KeyError), translated("x"):
        raise KeyError("mine")
