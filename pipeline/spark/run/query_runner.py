"""Runs one Spark query in the calling thread until it ends or is stopped; translates its errors."""

import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn, TypeAlias

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from pipeline.errors import (
    EnvironmentProblem,
    MedusaError,
    RefusedError,
    RetryError,
    UnavailableError,
)
from pipeline.spark.batch.facts import Engine
from pipeline.spark.query.function_task import SIGN
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.outside import outside_cause
from pipeline.spark.run.steered_query import QueryDoneError, Steering
from pipeline.spark.session.callback_connection import CallbackConnection
from pipeline.spark.session.java_log import end_not_logged

START_DEADLINE_S = 60.0
STOP_DEADLINE_S = 60.0
POLL_S = 1
LOCK_S = 0.05

SparkError: TypeAlias = PySparkException | Py4JJavaError
"""Errors of PySpark; for tasks often the untranslated Java error."""
Write = Callable[[DataFrame, int, Engine], None]
"""Handler of a batch: its rows, its number, and the query's engine."""

_log = logging.getLogger(__name__)


class StoppingError(Exception):
    """The query was stopped on request, between two batches or before it wrote anything."""


class DamagedCheckpointError(RetryError):
    """Spark cannot read its own checkpoint; the state must be rebuilt."""

    code = "damaged-checkpoint"


class LostDataError(RefusedError):
    """An input lost records before they were read; Spark reports the place in varying forms."""

    code = "lost-data"


@dataclass(frozen=True, slots=True)
class Query:
    """A query that is ready to run.

    Args:
        name: its name in Spark's messages.
        rows: its results.
        lowered: the fragment that `rows` was emitted from.
        folder: its checkpoint.
        write: handles each batch.
        watch: called about once a second while it runs; an error from it ends the query.
        steering: plans its batches; None: Spark does.
        end: called before it is stopped: a question that waits for a plan has to be answered.
    """

    name: str
    rows: DataFrame
    lowered: Lowered
    folder: Path
    write: Write
    watch: Callable[[Engine], None] = lambda _: None
    steering: Steering | None = None
    end: Callable[[], None] = lambda: None


class QueryRunner:
    """Runs queries, one after the other, until one stop event."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._in_batch = threading.Lock()
        self._ending = threading.Event()
        self._stopped = threading.Event()
        self._raised: MedusaError | None = None
        self._quiet = ExitStack()

    def run(self, query: Query) -> None:
        """Run a query; returns only if its plan ends, when its last batch is done.

        Raises:
            StoppingError: it was stopped.
            MedusaError: the error of its `write`, or the translated error of Spark.
        """
        self._raised = None
        self._ending.clear()
        self._stopped.clear()
        handler: list[Callable[[DataFrame, int], None]] = []
        ready = threading.Event()
        connection = CallbackConnection(query.rows.sparkSession)

        def write(rows: DataFrame, batch: int) -> None:
            ready.wait(START_DEADLINE_S)
            connection.note()
            handle = next(iter(handler), None)
            if handle is None:
                raise StoppingError  # the query has outlived its run
            handle(rows, batch)

        writer = query.rows.writeStream.outputMode("append").queryName(query.name)
        writer = writer.option("checkpointLocation", query.folder.as_uri()).foreachBatch(write)
        try:
            running = _started(writer, query.folder)
            engine = Engine(running, query.lowered)
            handler.append(partial(self._write, query, engine))
            ready.set()
            self._watch(running, query, engine)
        except PySparkException as error:
            failure = self._failure(error, query)
            if not isinstance(failure, QueryDoneError):
                raise failure from error
        finally:
            # Java keeps `write` as long as the query, so `write` must not keep the query in turn,
            # nor an error of it, whose frames keep it: it would stay in memory with its plans.
            handler.clear()
            if query.steering is not None:
                query.steering.close()
            self._raised = None
            self._quiet.close()
            connection.close()

    def _failure(self, error: PySparkException, query: Query) -> MedusaError | StoppingError:
        """The error of `write` if it ended the query; else a stop, or Spark's error."""
        if self._raised is not None:
            return self._raised
        if query.steering is not None and query.steering.raised is not None:
            return query.steering.raised
        return StoppingError() if self._stop.is_set() else from_spark(error, query.folder)

    def _write(self, query: Query, engine: Engine, rows: DataFrame, batch: int) -> None:
        # The thread that ends the query has the lock and waits for this call, so never wait for
        # long.
        while not self._in_batch.acquire(timeout=LOCK_S):
            if self._ends:
                self._give_up()
        try:
            if not self._ends:
                if query.steering is not None:
                    query.steering.begin(engine)
                query.write(rows, batch, engine)
                return
        except MedusaError as error:
            self._raised = error
            # The lane logs the translated error; Spark would log its own stack for it.
            self._quiet.enter_context(end_not_logged(engine.query, rows.sparkSession))
            raise
        except (PySparkException, Py4JJavaError) as error:
            self._raised = from_spark(error, None)
            raise
        finally:
            self._in_batch.release()
        self._give_up()

    @property
    def _ends(self) -> bool:
        """Whether no further batch is written: the watching thread stops the query soon."""
        return self._stop.is_set() or self._ending.is_set()

    def _give_up(self) -> NoReturn:
        """Abort a batch after the query was stopped, which is not an error."""
        self._stopped.wait(STOP_DEADLINE_S)
        raise StoppingError

    def _watch(self, running: StreamingQuery, query: Query, engine: Engine) -> None:
        while not self._stop.is_set():
            if running.awaitTermination(POLL_S):
                raise RetryError("the query ended by itself")
            try:
                query.watch(engine)
            except Exception:
                self._end(running, query)
                raise
        self._end(running, query)
        raise StoppingError

    def _end(self, running: StreamingQuery, query: Query) -> None:
        """Stop between two batches: inside one, Spark's own error handling would fail."""
        self._ending.set()
        query.end()
        if not self._in_batch.acquire(timeout=STOP_DEADLINE_S):
            raise RetryError("the last batch did not finish in time")
        try:
            with end_not_logged(running, query.rows.sparkSession):
                self._stopped.set()
                running.stop()
        except PySparkException as error:
            _log.debug("the query ended while it was stopped: %s", first_line(error))
        finally:
            self._in_batch.release()


def _started(writer: DataStreamWriter, folder: Path) -> StreamingQuery:
    """Start a query. Java reads only files of the checkpoint here; topics are read later.

    Raises:
        DamagedCheckpointError: the checkpoint is unreadable.
    """
    try:
        return writer.start()
    except Py4JJavaError as error:
        outside = outside_cause(_with_causes(error), first_line(error))
        if outside is not None:
            raise outside from error
        raise DamagedCheckpointError(
            f"the checkpoint cannot be read: {first_line(error)}", place=str(folder)
        ) from error


_DATA_LOSS = ("Some data may have been lost", "KAFKA_DATA_LOSS", "OffsetOutOfRange")
_IN_BATCH = "FOREACH_BATCH_USER_FUNCTION_ERROR"
_DAMAGED_STATE = (
    "CANNOT_LOAD_STATE_STORE",
    "STATE_STORE_",
    "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
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
    outside = outside_cause(_with_causes(error), first_line(error))
    if outside is not None:
        return outside
    if why := _damaged(text, folder):
        return DamagedCheckpointError(f"{why}: {first_line(error)}", place=str(folder or ""))
    return RetryError(f"the query failed: {first_line(error)}")


def _damaged(text: str, folder: Path | None) -> str:
    """What the text of an error says about the checkpoint; empty: nothing.

    A query that fails outside of a batch for an unknown reason may have failed by its checkpoint,
    and would each time. The description of any failed query names the folder.
    """
    unreadable = "the checkpoint cannot be read"
    if any(sign in text for sign in _DAMAGED_STATE):
        return unreadable
    if folder is None or _IN_BATCH in text:
        return ""
    if str(folder) in text.partition(_STATE_OF_QUERY)[0]:
        return unreadable
    if any(sign in text for sign in _DAMAGED_LOG):
        return unreadable
    return "the query failed outside of a batch" if str(folder) in text else ""


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
    return EnvironmentProblem(
        f"a file cannot be written or read: {error.strerror or error}",
        place=str(error.filename or folder),
        hint="is the disk full, or the folder not ours to write? When it is mended the fragment "
        "goes on by itself",
    )


def _with_causes(error: SparkError) -> str:
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
