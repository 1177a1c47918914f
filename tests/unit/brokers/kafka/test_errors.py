"""The driver's errors and ours."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from brokers.kafka.errors import (
    NoSuchTopicError,
    OffsetGoneError,
    RecordTooLargeError,
    TopicExistsError,
    medusa_error,
    translated,
)
from pipeline.errors import (
    BrokenInvariantError,
    FencedError,
    MedusaError,
    RefusedError,
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
        (KafkaError.CONCURRENT_TRANSACTIONS, RetryError),
        (KafkaError.INVALID_TXN_STATE, RetryError),
        (KafkaError._DESTROY_BROKER, RetryError),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, NoSuchTopicError),
        (KafkaError.TOPIC_ALREADY_EXISTS, TopicExistsError),
        (KafkaError._AUTO_OFFSET_RESET, OffsetGoneError),
        (KafkaError.MSG_SIZE_TOO_LARGE, RecordTooLargeError),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, RefusedError),
        (KafkaError._FATAL, BrokenInvariantError),
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
    retriable = KafkaError(KafkaError.UNKNOWN, "x", retriable=True)
    aborting = KafkaError(KafkaError.UNKNOWN, "x", txn_requires_abort=True)
    assert type(medusa_error(retriable)) is RetryError
    assert type(medusa_error(aborting)) is RetryError
    assert type(medusa_error(KafkaError(KafkaError.UNKNOWN, "x"))) is BrokenInvariantError


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


def test_other_errors_pass() -> None:
    """Only the driver's errors are translated."""
    with pytest.raises(KeyError), translated("x"):
        raise KeyError("mine")
