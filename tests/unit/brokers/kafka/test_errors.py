"""The driver's errors and ours."""

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
    """The kind says what to do next; the place and the driver's words are kept."""
    found = medusa_error(KafkaError(code, "these words"), "topic t")
    assert type(found) is kind
    assert found.place == "topic t"
    assert "these words" in found.message


def test_what_the_driver_calls_retriable_is_tried_again() -> None:
    """Codes that the table does not name follow the driver's own flags."""
    retriable = KafkaError(KafkaError.INVALID_REQUEST, "x", retriable=True)
    aborting = KafkaError(KafkaError.INVALID_REQUEST, "x", txn_requires_abort=True)
    assert type(medusa_error(retriable)) is NotNowError
    assert type(medusa_error(aborting)) is NotNowError


class Refused:
    """A record as the driver hands it back: without its headers."""

    def topic(self) -> str:
        """Where it was sent to."""
        return "n.f.dlq"

    def value(self) -> bytes:
        """Five megabytes."""
        return b"v" * 5_000_000

    def key(self) -> None:
        """There is none."""


def test_a_record_that_is_too_large_counts_with_its_headers() -> None:
    """Else the advice may be a limit below the one that there is."""
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
def test_what_a_broker_that_is_away_causes_is_external(code: int) -> None:
    """So no number of such failures in a row ends a lane for good."""
    assert medusa_error(KafkaError(code, "x")).external


@pytest.mark.parametrize(
    "code",
    [KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.PRODUCER_FENCED, KafkaError._AUTO_OFFSET_RESET],
)
def test_what_lasts_until_somebody_decides_is_not(code: int) -> None:
    """A record that is too large, another owner, records that are gone."""
    assert not medusa_error(KafkaError(code, "x")).external


def test_the_original_is_the_cause() -> None:
    """Nothing of the driver's error is lost for whoever looks for the reason."""
    original = KafkaException(KafkaError(KafkaError._TRANSPORT))
    with pytest.raises(UnavailableError) as caught, translated("topic t"):
        raise original
    assert caught.value.__cause__ is original
    assert caught.value.place == "topic t"


def test_an_exception_without_an_error_is_unexpected() -> None:
    """An exception of the driver that carries no code does not break the translation."""
    assert type(medusa_error(KafkaException("odd"))) is BrokenInvariantError


def test_a_call_without_a_result_and_without_an_error_is_tried_again() -> None:
    """Why it failed, the driver tells in another call, if at all."""
    original = SystemError("<method 'flush'> returned NULL without setting an exception")
    with pytest.raises(RetryError) as caught, translated("committing"):
        raise original
    assert caught.value.__cause__ is original
    assert caught.value.place == "committing"


def test_other_errors_pass() -> None:
    """Only the driver's errors are translated."""
    with pytest.raises(KeyError), translated("x"):
        raise KeyError("mine")
