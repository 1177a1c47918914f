"""Spark session of a command: without output, and Ctrl-C ends it with its Java process."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from pipeline.errors import MedusaError
from pipeline.spark.session.interrupts import Interrupts
from pipeline.spark.session.session import close_session, leave_session


@contextmanager
def command_session(open_it: Callable[[], SparkSession], log: Path) -> Iterator[SparkSession]:
    """A session for the duration of the block.

    Args:
        open_it: opens it.
        log: output file of its Java process; its folder exists.

    Raises:
        EnvironmentProblem: it does not start.
        KeyboardInterrupt: Ctrl-C was pressed; its Java process has ended.
    """
    # py4j logs a trace of each call that Ctrl-C interrupts, also near the end of this process:
    # without a handler, the logging library would print it.
    logging.getLogger().addHandler(logging.NullHandler())
    with Interrupts() as interrupts:
        with _java_writes_into(log):
            spark = open_it()
        interrupts.opened()
        try:
            yield spark
        finally:
            leave_session(spark) if interrupts.happened else close_session(spark)


@contextmanager
def _java_writes_into(log: Path) -> Iterator[None]:
    """Redirect the stderr of a Java process that is started in the block into a file.

    If it does not start, the contents of the file are shown.
    """
    ours = os.dup(2)
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    except MedusaError:
        os.write(ours, log.read_bytes())
        raise
    finally:
        os.dup2(ours, 2)
        os.close(ours)
