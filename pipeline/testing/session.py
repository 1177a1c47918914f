"""A Spark session for tests: small, soon there, and fast at few records."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from brokers.embedded.fetch import ensure_jars
from brokers.embedded.java import find_java
from brokers.embedded.progress import Progress, silent
from pipeline.errors import MedusaError
from pipeline.settings import Settings
from pipeline.spark.from_memory import MemoryQueries, open_memory_session
from pipeline.spark.session import close_session, leave_session
from pipeline.testing.interrupts import Interrupts


@contextmanager
def open_tests(settings: Settings, progress: Progress = silent) -> Iterator[MemoryQueries]:
    """Open a session; fetches the jars if they are not there yet.

    Raises:
        EnvironmentProblem: Java is missing, or the session does not start.
        KeyboardInterrupt: Ctrl-C was pressed; its Java process has ended.
    """
    java = find_java(os.environ)
    ensure_jars(Path(settings.cache).expanduser(), lambda: java, progress)
    with (
        tempfile.TemporaryDirectory(prefix="medusa-test-", ignore_cleanup_errors=True) as name,
        Interrupts() as interrupts,
    ):
        folder = Path(name)
        with _java_writes_into(folder / "java.log"):
            spark = open_memory_session(settings, folder, java)
        interrupts.opened()
        try:
            yield MemoryQueries(spark, folder)
        finally:
            leave_session(spark) if interrupts.happened else close_session(spark)


@contextmanager
def _java_writes_into(log: Path) -> Iterator[None]:
    """Let a Java process that is started in the block write its stderr into a file.

    What it says there is of use only if it does not start; then it is shown.
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
