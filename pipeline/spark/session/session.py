"""Spark session of a node: one long-lived JVM in which many queries run.

The settings are those with a measured effect on latency. Without the file-system based checkpoint
manager and the bare local file system, every checkpoint file forks a `chmod` process; the default
of 200 shuffle partitions would be pinned in each checkpoint for life.
"""

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import SparkSession

from brokers.children import child_processes
from brokers.embedded.class_archive import java_options
from brokers.embedded.jars import spark_jars
from brokers.embedded.java import Java
from pipeline.errors import EnvironmentProblem, MedusaError, UnavailableError
from pipeline.settings import Settings, secret_variables
from pipeline.spark.session.cluster import (
    ExecutorWatch,
    Share,
    await_executors,
    cluster_config,
    executors,
    is_cluster,
    is_stopped,
    own_address,
    reason,
)
from pipeline.spark.session.java_log import LEVEL, set_log_levels
from schemas.empty_items import ITEMS_MAX

Session: TypeAlias = SparkSession
_POLL_S = 0.05
BATCHES_RETAINED: Final = 20
"""Number of batches whose checkpoint files Spark retains; older ones are deleted."""
STATE_FORMAT: Final = "spark.sql.streaming.stateStore.checkpointFormatVersion"
_STREAMING = "org.apache.spark.sql.execution.streaming"
AVRO_BYTES_MAX = 16_777_216
_AVRO_LIMITS = " ".join(
    f"-Dorg.apache.avro.limits.{what}.maxLength={limit}"
    for what, limit in (
        ("string", AVRO_BYTES_MAX),
        ("bytes", AVRO_BYTES_MAX),
        ("collectionItems", ITEMS_MAX),
    )
)
"""Avro allocates the length that a value declares before it reads the bytes: a few bytes of one
invalid value would exhaust the node's memory."""
STATE_SETTINGS: Final = {
    "spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Each attempt at a batch has unique file names, and the commit log contains the valid ones: the
    # state of an abandoned attempt is never loaded.
    STATE_FORMAT: "2",
    # A start has to apply every batch since the last snapshot: by default those of a minute.
    "spark.sql.streaming.stateStore.maintenanceInterval": "10s",
    "spark.sql.streaming.minBatchesToRetain": str(BATCHES_RETAINED),
}
"""Settings of the state store."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Settings of a session.

    Args:
        master: Spark's master URL.
        memory: heap of the driver, as Spark writes it: `1g`.
        jars: connector jars, and the bare local file system.
        scratch: a folder for Spark's own temporary files.
        cached_readers: Kafka readers kept open; at least the sum of partitions read.
        java_options: for the Java process of the driver.
        share: its resources on a cluster, if the master is one.
        python: interpreter of Spark's Python processes; empty: that of this process.
        withheld: environment variables that are empty in those processes and executors.
    """

    app: str
    master: str
    memory: str
    jars: tuple[Path, ...]
    scratch: Path
    cached_readers: int = 512
    java_options: str = ""
    share: Share = field(default_factory=Share)
    python: str = ""
    withheld: frozenset[str] = frozenset()


def session_settings(settings: Settings, app: str, scratch: Path, java: Java) -> SessionSettings:
    """Build the session settings of this installation.

    Raises:
        EnvironmentProblem: a jar is missing.
    """
    cache = Path(settings.cache).expanduser().absolute()
    return SessionSettings(
        app=app,
        master=settings.spark_master,
        memory=settings.spark_memory,
        jars=spark_jars(cache),
        scratch=scratch,
        java_options=java_options(cache, java),
        share=Share(int(settings.spark_cores), settings.spark_executor_memory, settings.spark_host),
        python=settings.spark_python,
        withheld=secret_variables(settings) & os.environ.keys(),
    )


def open_session(settings: SessionSettings) -> SparkSession:
    """Start the JVM and the session (4 to 6 seconds); on a cluster, until it has an executor.

    Raises:
        EnvironmentProblem: it does not start; with Java's reason, if any. UnavailableError: the
        cluster's master does not answer, or gives no executor in time.
    """
    config = dict(_config(settings))
    config |= {f"spark.executorEnv.{name}": "" for name in sorted(settings.withheld)}
    if is_cluster(settings.master):
        own = own_address(settings.master)
        config |= cluster_config(settings.share, own, f"-Xss4m {_AVRO_LIMITS}")
    # Else Spark uses the first `python3` in the path.
    python = settings.python or os.environ.get("PYSPARK_PYTHON") or sys.executable
    os.environ["PYSPARK_PYTHON"] = python
    builder = SparkSession.builder.appName(settings.app).master(settings.master)
    for key, value in config.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
        set_log_levels(spark)
    except (Py4JError, PySparkException, OSError) as error:
        logs = ", and in the logs of the cluster's workers" if is_cluster(settings.master) else ""
        raise EnvironmentProblem(
            f"the Spark session could not be opened: {reason(error)}",
            place=f"spark.master {settings.master}, spark.memory {settings.memory}",
            hint=f"what Java said about it stands above, or in the node's .out file{logs}.",
        ) from error
    if is_cluster(settings.master):
        _await_executors(spark, settings.master)
    return spark


def _await_executors(spark: SparkSession, master: str) -> None:
    try:
        await_executors(master, partial(executors, spark))
    except UnavailableError:
        close_session(spark)
        raise
    except Py4JError as error:
        raise UnavailableError(
            f"the Spark session has ended: {reason(error)}", place=f"spark.master {master}"
        ) from error


def _config(settings: SessionSettings) -> Mapping[str, str]:
    """Spark's settings, local and on a cluster."""
    return {
        "spark.jars": ",".join(str(jar) for jar in settings.jars),
        # Here, too, since only classes of Java's own class loader can be in an archive.
        "spark.driver.extraClassPath": ":".join(map(str, settings.jars)),
        "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
        "spark.sql.streaming.checkpointFileManagerClass": (
            f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        **STATE_SETTINGS,
        "spark.sql.shuffle.partitions": "2",
        # A query ends between two batches, when it is asked to; else something of Java's is stuck.
        "spark.sql.streaming.stopTimeout": "60s",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # The oldest batch first. FAIR compares names while all wait: with more fragments than
        # cores, the last in the alphabet would get nothing at all.
        "spark.scheduler.mode": "FIFO",
        "spark.driver.memory": settings.memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Passwords, logins and private keys in Spark's output of options and settings.
        "spark.redaction.regex": r"(?i)secret|password|token|access[.]?key|jaas|keystore[.]key",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": LEVEL,
        "spark.local.dir": str(settings.scratch / "local"),
        "spark.sql.warehouse.dir": str(settings.scratch / "warehouse"),
        "spark.kafka.consumer.cache.capacity": str(settings.cached_readers),
        "spark.driver.extraJavaOptions": (
            f"-XX:+UseSerialGC -Xss4m {_AVRO_LIMITS} {settings.java_options}"
        ),
    }


def abandon_session(ended: threading.Event, within_s: float) -> None:
    """Terminate the Java process of a session that another thread opens, and wait for its end.

    PySpark exposes that process only once it answers, so it is found among the child processes.

    Args:
        ended: set when that thread is done.
        within_s: timeout, after which it is killed.
    """
    warnings.simplefilter("ignore")  # PySpark warns that its Java process is gone: we know
    ends_at = time.monotonic() + within_s
    while (children := child_processes()) or not ended.is_set():
        over = time.monotonic() > ends_at
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL if over else signal.SIGTERM)
        if over:
            return
        time.sleep(_POLL_S)


def watch_session(spark: SparkSession, master: str) -> Callable[[], MedusaError | None]:
    """Returns a check for the reason why no lane can run in a session; None while they can."""
    watch = ExecutorWatch(master, partial(executors, spark), partial(is_stopped, spark))

    def trouble() -> MedusaError | None:
        if has_ended(spark):
            return EnvironmentProblem(
                "the Java process of the node has ended",
                hint="start the node again; `medusa up` does so by itself",
            )
        return watch.trouble() if is_cluster(master) else None

    return trouble


def java_process(spark: SparkSession) -> int | None:
    """The id of the session's own Java process; None: it has none."""
    process = getattr(spark.sparkContext._gateway, "proc", None)  # noqa: SLF001 - PySpark keeps it
    return None if process is None else int(process.pid)


def has_ended(spark: SparkSession) -> bool:
    """Whether the session's own Java process is gone."""
    process = getattr(spark.sparkContext._gateway, "proc", None)  # noqa: SLF001 - PySpark keeps it
    return process is not None and process.poll() is not None


def close_session(spark: SparkSession) -> None:
    """Stop the session, unless its Java process is gone already."""
    with suppress(Py4JError, OSError):
        spark.stop()


def leave_session(spark: SparkSession) -> None:
    """Close a session whose Java process was killed, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark warns that its Java process is gone: we know
        close_session(spark)
