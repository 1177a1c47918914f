"""Runs one Spark query in the calling thread until it ends or is stopped."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from pipeline.errors import BrokenInvariantError, MedusaError, RetryError
from pipeline.spark.batch.facts import Engine
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.spark_errors import first_line, from_spark, from_start
from pipeline.spark.run.steered_query import Plan, QueryDoneError, Steering
from pipeline.spark.session.callback_connection import CallbackConnection
from pipeline.spark.session.java_log import end_not_logged

START_DEADLINE_S = 60.0
STOP_DEADLINE_S = 60.0
POLL_S = 1
LOCK_S = 0.05

Write = Callable[[DataFrame, int, Engine], None]
"""Handler of a batch: its rows, its number, and the query's engine."""

_log = logging.getLogger(__name__)


class StoppingError(Exception):
    """The query was stopped on request, between two batches or before it wrote anything."""


class BatchFailedError(Exception):
    """Ends a query whose batch has failed.

    PySpark keeps it as long as Java keeps the query, and an error keeps the frames that it has
    left. So it is a new one: those of the error itself refer to the query.
    """


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
        meter: called at the end of each batch, in its thread.
    """

    name: str
    rows: DataFrame
    lowered: Lowered
    folder: Path
    write: Write
    watch: Callable[[Engine], None] = lambda _: None
    steering: Steering | None = None
    end: Callable[[], None] = lambda: None
    meter: Callable[[Engine], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class Driver:
    """Handles the batches of a running query, and ends it.

    Args:
        write: as of `Query`.
        watch: as of `Query`.
        end: as of `Query`.
        stop: set when the query is to end.
    """

    write: Write
    watch: Callable[[Engine], None]
    end: Callable[[], None]
    stop: threading.Event


class QueryRunner:
    """Runs queries, one after the other, until one stop event."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def run(self, query: Query) -> None:
        """Run a query; see `RunningQuery.run`."""
        RunningQuery(query, self._stop).run()


class RunningQuery:
    """One query, from its start to its end.

    While it waits for the plan of a batch, another thread may take it over from the one that runs
    it. Single use.

    Args:
        query: not started yet.
        stop: ends it, until it is taken over.
    """

    def __init__(self, query: Query, stop: threading.Event) -> None:
        self._unstarted: Query | None = query
        self._folder, self._steering, self._meter = query.folder, query.steering, query.meter
        self._session = query.rows.sparkSession
        self._connection = CallbackConnection(self._session)
        self._handler: list[Callable[[DataFrame, int], None]] = []
        self._changing = threading.Lock()  # held while the driver changes, or the end begins
        self._driver = Driver(query.write, query.watch, query.end, stop)
        self._engine: Engine | None = None
        self._in_batch = threading.Lock()
        self._ending = threading.Event()
        self._stopped = threading.Event()
        self._raised: MedusaError | None = None
        self._quiet = ExitStack()
        self.taken_over = threading.Event()
        """Set when another thread has taken it over: a plan that waits has to return."""

    def run(self) -> None:
        """Run it; returns if its plan ends, when its last batch is done, or if it is taken over.

        Raises:
            StoppingError: it was stopped.
            MedusaError: the error of its `write`, or the translated error of Spark.
        """
        driver = self._driver
        with self._driven(driver):
            self._watch(self._start(), driver)

    def take_over(self, driver: Driver, plan: Plan) -> None:
        """Run it on, in the thread that calls, as `run` does.

        To be called while it waits for the plan of a batch: `plan` is asked for this one.

        Raises:
            RetryError: it has ended, or is about to.
            StoppingError, MedusaError: as by `run`.
        """
        with self._changing:
            engine, steering = self._engine, self._steering
            if self._ending.is_set() or engine is None or steering is None:
                if driver.stop.is_set():  # which has ended it, while it waited
                    raise StoppingError
                raise RetryError("the query has ended before it was taken over")
            self._driver = driver
            steering.plan_by(plan)
            self.taken_over.set()
        with self._driven(driver):
            self._watch(engine, driver)

    def _start(self) -> Engine:
        query, self._unstarted = self._unstarted, None
        if query is None:
            raise BrokenInvariantError("a query is started twice")
        handler, connection = self._handler, self._connection
        ready = threading.Event()

        def write(rows: DataFrame, batch: int) -> None:
            ready.wait(START_DEADLINE_S)
            connection.note()
            if failure := _handled(handler, rows, batch):
                raise BatchFailedError(failure)

        writer = query.rows.writeStream.outputMode("append").queryName(query.name)
        writer = writer.option("checkpointLocation", query.folder.as_uri()).foreachBatch(write)
        self._engine = engine = Engine(_started(writer, query.folder), query.lowered)
        handler.append(partial(self._write, engine))
        ready.set()
        return engine

    @contextmanager
    def _driven(self, driver: Driver) -> Iterator[None]:
        """Translate errors; drop the query in the end, unless it was taken over from the driver."""
        try:
            yield
        except PySparkException as error:
            failure = self._failure(error, driver)
            if self._driver is driver and not isinstance(failure, QueryDoneError):
                raise failure from error
        finally:
            if self._begin_end(driver):
                self._drop()

    def refuse_takeover(self) -> None:
        """Refuse a later takeover, unless it has been taken over; its plan is to end it."""
        with self._changing:
            if not self.taken_over.is_set():
                self._ending.set()

    def _drop(self) -> None:
        """Release what Java keeps.

        It keeps `write` as long as the query, so `write` must not keep the query in turn: it would
        stay in memory with its plans.
        """
        self._handler.clear()
        if self._steering is not None:
            self._steering.close()
        self._engine = self._raised = None
        self._quiet.close()
        self._connection.close()

    def _begin_end(self, driver: Driver) -> bool:
        """Let no other driver take it over any more; False: one has."""
        with self._changing:
            if self._driver is not driver:
                return False
            self._ending.set()
            return True

    def _failure(self, error: PySparkException, driver: Driver) -> MedusaError | StoppingError:
        """The error of `write` if it ended the query; else a stop, or Spark's error."""
        steering = self._steering
        if self._raised is not None:
            return self._raised
        if steering is not None and steering.raised is not None:
            return steering.raised
        return StoppingError() if driver.stop.is_set() else from_spark(error, self._folder)

    def _write(self, engine: Engine, rows: DataFrame, batch: int) -> None:
        # The thread that ends the query has the lock and waits for this call, so never wait for
        # long.
        while not self._in_batch.acquire(timeout=LOCK_S):
            if self._ends:
                self._give_up()
        try:
            if not self._ends:
                if self._steering is not None:
                    self._steering.begin(engine)
                self._driver.write(rows, batch, engine)
                self._meter(engine)
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
        return self._driver.stop.is_set() or self._ending.is_set()

    def _give_up(self) -> NoReturn:
        """Abort a batch after the query was stopped, which is not an error."""
        self._stopped.wait(STOP_DEADLINE_S)
        raise StoppingError

    def _watch(self, engine: Engine, driver: Driver) -> None:
        while not driver.stop.is_set():
            has_ended = engine.query.awaitTermination(POLL_S)
            if self._driver is not driver:
                return
            if has_ended:
                raise RetryError("the query ended by itself")
            try:
                driver.watch(engine)
            except Exception:
                self._end(engine, driver)
                raise
        if self._end(engine, driver):
            raise StoppingError

    def _end(self, engine: Engine, driver: Driver) -> bool:
        """Stop between two batches: inside one, Spark's own error handling would fail.

        False: it was taken over from the driver.
        """
        if not self._begin_end(driver):
            return False
        driver.end()
        if not self._in_batch.acquire(timeout=STOP_DEADLINE_S):
            raise RetryError("the last batch did not finish in time")
        try:
            with end_not_logged(engine.query, self._session):
                self._stopped.set()
                engine.query.stop()
        except PySparkException as error:
            _log.debug("the query ended while it was stopped: %s", first_line(error))
        finally:
            self._in_batch.release()
        return True


def _handled(
    handler: Sequence[Callable[[DataFrame, int], None]], rows: DataFrame, batch: int
) -> str:
    """Handle a batch; returns what has failed, if anything."""
    handle = next(iter(handler), None)
    if handle is None:
        return "the query has outlived its run"
    try:
        handle(rows, batch)
    except (MedusaError, StoppingError, PySparkException, Py4JJavaError) as error:
        return f"{type(error).__name__}: {first_line(error)}"
    except Exception as error:  # noqa: BLE001 - Spark would log its text alone
        _log.exception("handling a batch failed")
        return f"{type(error).__name__}: {first_line(error)}"
    return ""


def _started(writer: DataStreamWriter, folder: Path) -> StreamingQuery:
    """Start a query. Java reads only files of the checkpoint here; topics are read later.

    Raises:
        DamagedCheckpointError: the checkpoint is unreadable. OutsideBatchError: perhaps it is.
    """
    try:
        return writer.start()
    except Py4JJavaError as error:
        raise from_start(error, folder) from error
