"""A Spark session for tests: small, quick to start, and fast with few records."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from brokers.embedded.fetch import ensure_jars
from brokers.embedded.java import find_java
from brokers.embedded.progress import Progress, silent
from pipeline.settings import Settings
from pipeline.spark.run.from_memory import MemoryQueries, open_memory_session
from pipeline.spark.session.command_session import command_session


@contextmanager
def open_tests(settings: Settings, progress: Progress = silent) -> Iterator[MemoryQueries]:
    """Open a session; fetches the jars if they are missing.

    Raises:
        EnvironmentProblem: Java is missing, or the session does not start.
        KeyboardInterrupt: Ctrl-C was pressed; its Java process has ended.
    """
    java = find_java(os.environ)
    ensure_jars(Path(settings.cache).expanduser(), lambda: java, progress)
    with tempfile.TemporaryDirectory(prefix="medusa-test-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        opening = partial(open_memory_session, settings, folder, java)
        with command_session(opening, folder / "java.log") as spark:
            yield MemoryQueries(spark, folder)
