from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors.exceptions.base import PySparkException

from pipeline.errors import MedusaError, RefusedError, RetryError
from pipeline.spark.query.function_task import SIGN
from pipeline.spark.run.spark_errors import (
    DamagedCheckpointError,
    LostDataError,
    OutsideBatchError,
    from_spark,
    from_start,
)

FOLDER = Path("/data/checkpoints/net/box/epoch-1")


@pytest.mark.parametrize(
    ("text", "folder", "kind"),
    [
        ("[CANNOT_LOAD_STATE_STORE.UNRELEASED] x", None, DamagedCheckpointError),
        ("[CANNOT_LOAD_STATE_STORE.UNRELEASED] x", FOLDER, DamagedCheckpointError),
        (
            "[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] x",
            FOLDER,
            DamagedCheckpointError,
        ),
        ("[STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY] x", FOLDER, DamagedCheckpointError),
        ("Log file was malformed: version", FOLDER, DamagedCheckpointError),
        (f"Incomplete log file {FOLDER}/offsets/3", FOLDER, DamagedCheckpointError),
        ("the value 'x' cannot be cast because it is malformed", FOLDER, DamagedCheckpointError),
        ("the value 'x' cannot be cast because it is malformed", None, RetryError),
        (f"[FOREACH_BATCH_USER_FUNCTION_ERROR] is malformed {FOLDER}", FOLDER, RetryError),
        ("Some data may have been lost", None, LostDataError),
    ],
)
def test_an_error_inside_a_batch_is_not_attributed_to_the_checkpoint(
    text: str, folder: Path | None, kind: type[MedusaError]
) -> None:
    """Except where its state cannot be read; a value that cannot be cast is no damaged log."""
    assert type(from_spark(PySparkException(text), folder)) is kind


def test_a_query_that_fails_outside_of_a_batch_may_have_failed_by_its_checkpoint() -> None:
    """It would each time; the description of a failed query names the folder."""
    text = f"[STREAM_FAILED] x is null\n=== Streaming Query ===\nPlan: {FOLDER}"
    found = from_spark(PySparkException(text), FOLDER)
    assert type(found) is OutsideBatchError
    assert found.message.startswith("the query failed outside of a batch: [STREAM_FAILED]")
    started = from_start(TaskError(": java.lang.IllegalStateException: x"), FOLDER)
    assert type(started) is OutsideBatchError
    malformed = TaskError(": java.lang.IllegalStateException: the log file was malformed")
    assert type(from_start(malformed, FOLDER)) is DamagedCheckpointError


@pytest.mark.parametrize(
    "cause",
    [
        "java.lang.OutOfMemoryError: Java heap space",
        "java.lang.OutOfMemoryError: unable to create native thread",
        "java.lang.InterruptedException",
        "py4j.Py4JException: An exception was raised by the Python Proxy",
        "org.apache.spark.SparkException: [CONCURRENT_QUERY] another instance is active",
    ],
)
@pytest.mark.parametrize("sign", ["[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED]", "[STREAM_FAILED]"])
def test_a_failure_of_the_process_says_nothing_about_the_checkpoint(cause: str, sign: str) -> None:
    """Whatever it interrupts, and wherever; a state is lost with its checkpoint."""
    error = PySparkException(f"{sign} x\n=== Streaming Query ===\nPlan: {FOLDER}")
    vars(error)["_stackTrace"] = f"x\nCaused by: {cause}\n\tat py4j.Gateway.invoke"
    for folder in (None, FOLDER):
        assert type(from_spark(error, folder)) is RetryError
    assert type(from_start(TaskError(f": {cause}", TRACE), FOLDER)) is RetryError


def test_frames_of_py4j_are_no_cause() -> None:
    """They are in the stack of each call."""
    error = PySparkException(f"Incomplete log file {FOLDER}/offsets/3")
    vars(error)["_stackTrace"] = "x\n\tat py4j.commands.CallCommand.execute(CallCommand.java:79)"
    assert type(from_spark(error, FOLDER)) is DamagedCheckpointError


class TaskError(Py4JJavaError):  # type: ignore[misc] # py4j has no types
    """Java's error of a task that failed while rows were collected."""

    def __init__(self, *lines: str) -> None:
        Exception.__init__(self)
        self._lines = ("An error occurred while calling o123.collectAsArrowToPython.", *lines)

    def __str__(self) -> str:
        return "\n".join(self._lines)


ABORTED = "org.apache.spark.SparkException: Job aborted: java.lang.OutOfMemoryError: heap"
TRACE = "\tat org.apache.spark.scheduler.DAGScheduler"


def test_a_failed_task_has_the_message_of_java() -> None:
    """Without Python's traceback and Java's stack."""
    waited = ": org.apache.spark.SparkException: Exception thrown in awaitResult: "
    for said in ((f": {ABORTED}", TRACE), (waited, TRACE, f"Caused by: {ABORTED}", TRACE)):
        found = from_spark(TaskError(*said), None)
        assert type(found) is RetryError
        assert found.message == f"the query failed: {ABORTED}"


def test_a_failed_python_process_has_the_message_of_its_exception() -> None:
    """Not the line before it."""
    text = (
        "An exception was thrown from the Python worker:\n"
        "Traceback (most recent call last):\n"
        '  File "worker.py", line 1, in main\n'
        "    read()\n"
        "ModuleNotFoundError: No module named 'pyarrow'\n\n"
    )
    found = from_spark(PySparkException(text), None)
    assert found.message == "the query failed: ModuleNotFoundError: No module named 'pyarrow'"


@pytest.mark.parametrize("folder", [None, FOLDER])
def test_a_function_that_cannot_be_called_is_reported_as_such(folder: Path | None) -> None:
    """In one line of a traceback; a retry would not help."""
    said = "box rated: rating.py:rate: cannot be loaded on this node: No module named 'x'"
    error = "pipeline.spark.query.function_task.FunctionError"
    text = f"Traceback:\n  File x\n{error}: {SIGN} {said}\n\tat"
    found = from_spark(PySparkException(text), folder)
    assert type(found) is RefusedError
    assert found.message == said


@pytest.mark.parametrize(
    "said",
    [
        "ModuleNotFoundError: No module named 'pipeline'",
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.10",
        'java.io.IOException: Cannot run program "/opt/python": error=2, No such file or directory',
    ],
)
def test_a_worker_without_our_python_is_reported_with_the_setting(said: str) -> None:
    """A retry would find the same interpreter."""
    found = from_spark(PySparkException(said), None)
    assert type(found) is RefusedError
    assert said in found.message
    assert "spark.python" in found.hint
