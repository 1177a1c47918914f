"""Translation of the errors of Spark, Java and the disk."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors.exceptions.base import PySparkException

from pipeline.errors import (
    EnvironmentProblem,
    MedusaError,
    RefusedError,
    RetryError,
    UnavailableError,
)
from pipeline.spark.query.function_task import SIGN
from pipeline.spark.run.disk import full, is_full
from pipeline.spark.run.outside import outside_cause

SparkError: TypeAlias = PySparkException | Py4JJavaError
"""Errors of PySpark; for tasks often the untranslated Java error."""


class DamagedCheckpointError(RetryError):
    """Spark cannot read its own checkpoint; the state must be rebuilt."""

    code = "damaged-checkpoint"


class OutsideBatchError(RetryError):
    """A query failed between two batches for an unknown cause, which may be its checkpoint."""


class LostDataError(RefusedError):
    """An input lost records before they were read; Spark reports the place in varying forms."""

    code = "lost-data"


_DATA_LOSS = ("Some data may have been lost", "KAFKA_DATA_LOSS", "OffsetOutOfRange")
_IN_BATCH = "FOREACH_BATCH_USER_FUNCTION_ERROR"
_DAMAGED_STATE = (
    "CANNOT_LOAD_STATE_STORE",
    "STATE_STORE_",
    "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
    "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY",
    "StateStoreProvider",
    "RocksDBException",
)
_DAMAGED_LOG = (
    "MALFORMED_LOG",
    "is malformed",
    "was malformed",
    "BATCH_METADATA_NOT_FOUND",
    "Unexpected end-of-input",
)


_OF_PROCESS = re.compile(
    r"java\.lang\.(?:OutOfMemoryError|StackOverflowError|InterruptedException)\b"
    r"|java\.io\.InterruptedIOException\b|java\.nio\.channels\.ClosedByInterruptException\b"
    r"|py4j\.Py4J\w*Exception\b|CONCURRENT_QUERY|stopped SparkContext"
)
"""Causes in the process of the node: its memory, its threads, its connection with Python, or
another query of the same checkpoint that has not ended yet. Whatever they interrupt looks damaged.
Py4j's frames are in the stack of every error, its exceptions are not."""
_STATE_OF_QUERY = "=== Streaming Query ==="
"""Begins Spark's description of a failed query, whose plan names the checkpoint."""
_WAITED = "Exception thrown in awaitResult"
_CAUSE = "Caused by: "
_TRACEBACK = "Traceback (most recent call last):"
_NO_PYTHON = (
    f"No module named '{__name__.partition('.')[0]}",
    "No module named pyspark",
    "PYTHON_VERSION_MISMATCH",
    "Cannot run program",
)
_PYTHON = (
    "on a cluster's workers spark.python has to be a Python of the node's version, with Medusa in "
    "it; then `medusa pause` and `medusa resume` the fragment: nothing is lost"
)
_OF_FUNCTION = re.compile(rf"{re.escape(SIGN)} (.*)")


def lost_data(error: SparkError) -> bool:
    """Whether a topic lost records before they were read."""
    text = str(error)
    return any(sign in text for sign in _DATA_LOSS)


def from_spark(error: SparkError, folder: Path | None) -> MedusaError:
    """Translate an error of Spark; the only translation of its errors.

    `folder` is the query's checkpoint; None for errors inside a batch. There a checkpoint's state
    is read, but its log is not, and an error may contain the folder's name for other reasons.
    """
    text = str(error)
    if lost_data(error):
        return LostDataError(
            "an input no longer holds records that were not read yet",
            hint="its retention overtook the lane, or the topic was made again; the log of the "
            "node names the partition and the offsets",
        )
    if (trouble := _OF_FUNCTION.search(text)) is not None:
        hint = "mend it and deploy; what it needs has to be installed on the node. Then `medusa "
        hint += "pause` and `medusa resume` the fragment: nothing is lost"
        return RefusedError(trouble[1], hint=hint)
    if any(sign in text for sign in _NO_PYTHON):
        what = f"Spark has no Python for a box's function: {first_line(error)}"
        return RefusedError(what, hint=_PYTHON)
    outside = outside_cause(with_causes(error), first_line(error))
    return _of_checkpoint(error, folder) if outside is None else outside


def _of_checkpoint(error: SparkError, folder: Path | None) -> RetryError:
    """Translate an error whose cause is the checkpoint, the process, or not known."""
    text = str(error)
    if _is_of_process(error):
        return RetryError(f"the query failed: {first_line(error)}")
    if _is_damaged(text, folder):
        what = f"the checkpoint cannot be read: {first_line(error)}"
        return DamagedCheckpointError(what, place=str(folder or ""))
    if folder is not None and _IN_BATCH not in text and str(folder) in text:
        return _outside_batch(error, folder)  # the description of any failed query names the folder
    return RetryError(f"the query failed: {first_line(error)}")


def from_start(error: SparkError, folder: Path) -> MedusaError:
    """Translate an error of the start of a query: Java reads only files of its checkpoint then."""
    found = from_spark(error, folder)
    if type(found) is not RetryError or _is_of_process(error):
        return found
    return _outside_batch(error, folder)


def _outside_batch(error: SparkError, folder: Path) -> OutsideBatchError:
    what = f"the query failed outside of a batch: {first_line(error)}"
    return OutsideBatchError(what, place=str(folder))


def _is_of_process(error: SparkError) -> bool:
    """Whether the process has failed, rather than what it reads."""
    return _OF_PROCESS.search(with_causes(error)) is not None


def _is_damaged(text: str, folder: Path | None) -> bool:
    """Whether the text of an error names the checkpoint as its cause."""
    if any(sign in text for sign in _DAMAGED_STATE):
        return True
    if folder is None or _IN_BATCH in text:
        return False
    if str(folder) in text.partition(_STATE_OF_QUERY)[0]:
        return True
    return any(sign in text for sign in _DAMAGED_LOG)


@contextmanager
def translated(folder: Path) -> Iterator[None]:
    """Translate errors of Spark, Java and the disk that leave the block.

    `folder` is the checkpoint of its queries.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise from_spark(error, folder) from error
    except (Py4JError, ConnectionError) as error:
        raise UnavailableError(f"Java does not answer: {first_line(error)}") from error
    except OSError as error:
        raise no_disk(error, folder) from error


def no_disk(error: OSError, folder: Path) -> EnvironmentProblem:
    """The error for a file that cannot be read or written; by default in the checkpoint."""
    if is_full(error):
        return full(str(error.strerror or error), error.filename or folder)
    return EnvironmentProblem(
        f"a file cannot be written or read: {error.strerror or error}",
        place=str(error.filename or folder),
        hint="is the disk full, or the folder not ours to write? When it is mended the fragment "
        "goes on by itself",
    )


def with_causes(error: SparkError) -> str:
    """The text of an error and its causes, which PySpark stores separately."""
    trace = getattr(error, "_stackTrace", None)
    return f"{error}\n{trace}" if isinstance(trace, str) else str(error)


def first_line(error: Exception) -> str:
    """The first meaningful line of an error, limited in length.

    It follows the failed call in a Java error, and the traceback in a Python error.
    """
    lines = [line for line in str(error).splitlines() if line.strip()]
    if _TRACEBACK in lines:
        lines = [x for x in lines[lines.index(_TRACEBACK) + 1 :] if not x[0].isspace()]
    elif isinstance(error, Py4JJavaError):
        lines = [line.removeprefix(": ") for line in lines[1:]]
        if lines and _WAITED in lines[0]:  # raised by the waiting thread; the cause follows
            lines = [line for line in lines if line.startswith(_CAUSE)] or lines
            lines[0] = lines[0].removeprefix(_CAUSE)
    return (lines[0].strip() if lines else type(error).__name__)[:500]
