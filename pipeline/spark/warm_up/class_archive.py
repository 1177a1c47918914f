"""Creates the class archive of sessions: see `brokers/embedded/class_archive.py`.

python -m pipeline.spark.warm_up.class_archive CACHE ARCHIVE
"""

import sys
import tempfile
import threading
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from brokers.embedded.class_archive import QUIET
from brokers.embedded.jars import spark_jars
from pipeline.spark.session.session import SessionSettings, open_session
from pipeline.spark.warm_up.practice import practise
from pipeline.system_clock import SystemClock

_JAVA_ENDS_WITHIN_S: Final = 120.0
"""Java writes the archive when it ends."""


def main(arguments: list[str]) -> int:
    """Practise in a session that writes its classes to an archive when it ends."""
    cache, archive = map(Path, arguments)
    with tempfile.TemporaryDirectory() as folder:
        spark = open_session(
            SessionSettings(
                app="medusa-classes",
                master="local[2]",
                memory="1g",
                jars=spark_jars(cache),
                scratch=Path(folder),
                java_options=f'"-XX:ArchiveClassesAtExit={archive}" {QUIET}',
            )
        )
        practise(spark, Path(folder) / "practice", SystemClock(), threading.Event())
        _load_all(spark, spark_jars(cache))
        process = spark.sparkContext._gateway.proc  # type: ignore[union-attr]  # noqa: SLF001 - PySpark keeps it
        spark.stop()
        process.stdin.close()
        return int(process.wait(_JAVA_ENDS_WITHIN_S))


def _load_all(spark: SparkSession, jars: tuple[Path, ...]) -> None:
    """Load the classes that only a lane with a broker uses; those with absent dependencies fail."""
    java = spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no other way
    loader = java.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
    for jar in jars:
        with zipfile.ZipFile(jar) as file:
            names = [name for name in file.namelist() if name.endswith(".class")]
        for name in names:
            with suppress(Py4JJavaError):
                java.Class.forName(  # type: ignore[union-attr]
                    name.removesuffix(".class").replace("/", "."), False, loader
                )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
