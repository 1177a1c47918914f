"""Detection of external causes in Java's errors: Kafka or a disk is unavailable. Pure.

Only names of exception classes, and text on the same line, are matched: a value of a record that
could not be processed may contain any other text.
"""

import re
from typing import Final

from brokers.kafka_interface import NoSuchTopicError, NotNowError
from pipeline.errors import EnvironmentProblem, MedusaError, NotAllowedError, UnavailableError
from pipeline.spark.run.disk import SIGNS, full

_KAFKA: Final = r"org\.apache\.kafka\.common\.errors\.(?:{})\b"
_RIGHTS: Final = re.compile(_KAFKA.format(r"\w+(?:Authorization|Authentication)Exception"))
_NO_TOPIC: Final = re.compile(
    _KAFKA.format("(?:UnknownTopicOrPartition|UnknownTopicId|InconsistentTopicId)Exception")
)
_AWAY: Final = re.compile(
    "|".join(
        (
            _KAFKA.format("(?:Timeout|Disconnect|Network|BrokerNotAvailable)Exception"),
            r"ConfigException: No resolvable bootstrap urls",
            r"java\.util\.concurrent\.TimeoutException: Cannot fetch record for offset",
        )
    )
)
_NOT_NOW: Final = re.compile(
    _KAFKA.format(
        "(?:NotLeaderOrFollower|LeaderNotAvailable|FencedLeaderEpoch|UnknownLeaderEpoch"
        "|CoordinatorNotAvailable|CoordinatorLoadInProgress|NotCoordinator|NotController"
        "|ReplicaNotAvailable|OffsetNotAvailable|KafkaStorage|UnknownServer"
        "|ThrottlingQuotaExceeded)Exception"
    )
)
_DISK: Final = re.compile(
    r"(?:IO|FileSystem|AccessDenied|FileNotFound|RocksDB|SparkFileNotFound)(?:Exception|Error)\b.*"
    rf"(?:(?P<full>{'|'.join(SIGNS)})|Read-only file system"
    r"|Too many open files|Stale file handle|Permission denied)"
)


class UnreadableError(UnavailableError):
    """Kafka does not answer Spark: records of a batch cannot be read now."""


def outside_cause(text: str, line: str) -> MedusaError | None:
    """Translate an error with an external cause; None if there is none.

    Args:
        text: the full text of the Java error, causes included.
        line: its first line, for the message.
    """
    if (found := _DISK.search(text)) is not None:
        return full(line) if found["full"] else _no_file(line)
    if _RIGHTS.search(text):
        return NotAllowedError(
            f"Kafka does not allow Spark to read: {line}",
            hint="whoever runs Kafka can give kafka.user the right; the fragment then goes on by "
            "itself",
        )
    if _NO_TOPIC.search(text):
        return NoSuchTopicError(f"a topic does not exist: {line}")
    if _AWAY.search(text):
        return UnreadableError(f"Kafka does not answer Spark: {line}")
    if _NOT_NOW.search(text):
        return NotNowError(f"Kafka cannot do it now: {line}")
    return None


def _no_file(line: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"a file cannot be written or read: {line}",
        hint="are the folders of the checkpoints and of `spark.local.dir` ours to write? When it "
        "is mended the fragment goes on by itself",
    )
