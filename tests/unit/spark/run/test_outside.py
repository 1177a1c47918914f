from pathlib import Path

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors.exceptions.base import PySparkException

from brokers.kafka_interface import NoSuchTopicError, NotNowError
from pipeline.errors import EnvironmentProblem, MedusaError, NotAllowedError, UnavailableError
from pipeline.spark.run.disk import DiskFullError
from pipeline.spark.run.outside import UnreadableError, outside_cause
from pipeline.spark.run.spark_errors import from_spark, no_disk, translated

FOLDER = Path("/data/checkpoints/net/box/epoch-1")
KAFKA = "org.apache.kafka.common.errors."


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (f"{KAFKA}TimeoutException: Timed out waiting for a node assignment.", UnreadableError),
        (f"{KAFKA}DisconnectException: null", UnreadableError),
        (f"{KAFKA}LeaderNotAvailableException: there is no leader", NotNowError),
        (f"{KAFKA}CoordinatorNotAvailableException: x", NotNowError),
        (f"{KAFKA}NotLeaderOrFollowerException: x", NotNowError),
        (f"{KAFKA}KafkaStorageException: Disk error", NotNowError),
        (f"{KAFKA}UnknownTopicOrPartitionException: This server does not host", NoSuchTopicError),
        (f"{KAFKA}TopicAuthorizationException: Not authorized", NotAllowedError),
        (f"{KAFKA}SaslAuthenticationException: Authentication failed", NotAllowedError),
        (f"{KAFKA}TransactionalIdAuthorizationException: x", NotAllowedError),
        (
            "org.apache.kafka.common.config.ConfigException: No resolvable bootstrap urls given",
            UnreadableError,
        ),
        (
            "java.util.concurrent.TimeoutException: Cannot fetch record for offset 7 in 120000 ms",
            UnreadableError,
        ),
        ("java.io.IOException: No space left on device", DiskFullError),
        ("java.io.FileNotFoundException: /c/0 (Permission denied)", EnvironmentProblem),
        ("org.rocksdb.RocksDBException: While appending: File too large", DiskFullError),
    ],
)
def test_an_external_cause_is_distinct_from_damage(cause: str, kind: type[MedusaError]) -> None:
    """Anywhere in Java's message; a state that cannot be written is no damaged one."""
    text = f"[CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT] x {FOLDER}\nCaused by: {cause}\n\tat x.y.Z"
    for folder in (None, FOLDER):
        found = from_spark(PySparkException(text), folder)
        assert type(found) is kind
        assert found.external


@pytest.mark.parametrize(
    "text",
    [
        "[CAST_INVALID_INPUT] The value 'No space left on device' cannot be cast",
        "[CAST_INVALID_INPUT] The value 'Kafka TimeoutException' cannot be cast",
        "java.lang.OutOfMemoryError: Java heap space",
        "java.io.IOException: unexpected end of file",
    ],
)
def test_other_messages_have_no_external_cause(text: str) -> None:
    """Neither values of a record, nor errors of a damaged file."""
    assert outside_cause(text, "one line") is None


def test_the_causes_of_a_pyspark_error_count() -> None:
    """Its own message often names only the query."""
    error = PySparkException("[STREAM_FAILED] Query x terminated with exception: Call: listOffsets")
    vars(error)["_stackTrace"] = f"x\nCaused by: {KAFKA}TimeoutException: x"
    assert type(from_spark(error, None)) is UnreadableError


def test_a_checkpoint_file_that_cannot_be_written_is_named() -> None:
    """With the folder if the system does not report the file."""
    named = no_disk(OSError(28, "No space left on device", "/c/offsets/0"), FOLDER)
    assert (named.place, named.external) == ("/c/offsets/0", True)
    assert no_disk(OSError("x"), FOLDER).place == str(FOLDER)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Py4JError("Answer from Java side is empty"), UnavailableError),
        (ConnectionRefusedError(111, "Connection refused"), UnavailableError),
        (PermissionError(13, "Permission denied", "/c"), EnvironmentProblem),
        (PySparkException(f"{KAFKA}TimeoutException: x"), UnreadableError),
    ],
)
def test_external_failures_of_a_lane_are_reported_as_such(
    error: Exception, kind: type[MedusaError]
) -> None:
    """An ended Java process, an unreadable file, and Kafka errors in Spark's messages."""
    with pytest.raises(kind), translated(FOLDER):
        raise error
