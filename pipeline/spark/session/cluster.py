"""Spark clusters: settings, waiting for executors, checks.

A cluster is a standalone master with its workers. It starts executors for this process, which
connect to it, fetch its jars, and run their own Python. Every wait here has a deadline.
"""

import shutil
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import SparkSession

from pipeline.errors import EnvironmentProblem, MedusaError, UnavailableError

ANSWERS_WITHIN_S: Final = 5.0
"""Connect timeout of each address of a master."""
EXECUTORS_WITHIN_S: Final = 60.0
"""How long a session may have no executor: a new one starts in seconds, if there is capacity."""
_POLL_S: Final = 0.1
_SCHEME: Final = "spark://"
_ROOM: Final = (
    "a worker needs a free core, and spark.executor_memory of free memory, and has to reach this "
    "machine at spark.host; the page of the master shows what there is and who has it"
)


@dataclass(frozen=True, slots=True)
class Share:
    """Resources of a session on a cluster, and its address for executors.

    Args:
        cores: maximum number, of all workers together.
        executor_memory: heap of each executor, as Spark writes it: `1g`.
        host: address of this machine for workers; empty: the address used towards the master.
    """

    cores: int = 2
    executor_memory: str = "1g"
    host: str = ""


def is_cluster(master: str) -> bool:
    """Whether a master is a cluster's; else Spark runs in this node's Java process."""
    return master.startswith(_SCHEME)


def addresses(master: str) -> tuple[tuple[str, int], ...]:
    """Addresses of a cluster's masters; all but one are standbys.

    >>> addresses("spark://one:7077,[::1]:7078")
    (('one', 7077), ('::1', 7078))
    """
    pairs = (one.rpartition(":") for one in master.removeprefix(_SCHEME).split(","))
    return tuple((host.strip("[]"), int(port)) for host, _, port in pairs)


def cluster_config(share: Share, own: str, executor_java: str) -> Mapping[str, str]:
    """Spark's additional settings for a cluster.

    A failed task ends its batch, as it does without a cluster: the lane repeats it. If only a part
    were computed again, observed metrics would count some records twice.

    Args:
        share: resources to request.
        own: this machine's address towards the master.
        executor_java: options for the Java of executors.
    """
    return {
        "spark.cores.max": str(share.cores),
        "spark.executor.memory": share.executor_memory,
        "spark.executor.extraJavaOptions": executor_java,
        "spark.driver.host": share.host or own,
        # A configured address may exist only on a router in between.
        "spark.driver.bindAddress": "0.0.0.0" if share.host else own,  # noqa: S104 - said above
        "spark.task.maxFailures": "1",
        "spark.stage.maxConsecutiveAttempts": "1",
    }


def own_address(master: str) -> str:
    """The address of this machine towards the master that answers.

    Raises:
        UnavailableError: none does.
    """
    why = ""
    for at in addresses(master):
        try:
            with socket.create_connection(at, ANSWERS_WITHIN_S) as connection:
                return str(connection.getsockname()[0])
        except OSError as error:
            why = error.strerror or str(error)
    raise UnavailableError(
        f"the Spark master does not answer: {why}",
        place=f"spark.master {master}",
        hint="check the address, and that the master runs; `medusa doctor` looks at it.",
    )


def await_executors(
    master: str,
    count: Callable[[], int],
    within_s: float = EXECUTORS_WITHIN_S,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until a session has an executor.

    Args:
        master: for messages.
        count: returns the number of its executors.
        within_s: timeout.
        sleep: waits between two polls.

    Raises:
        UnavailableError: it got none in time.
    """
    for _ in range(max(1, round(within_s / _POLL_S))):
        if count():
            return
        sleep(_POLL_S)
    raise UnavailableError(
        f"the Spark master gave no executor within {within_s:g} s",
        place=f"spark.master {master}",
        hint=f"{_ROOM}.",
    )


def executors(spark: SparkSession) -> int:
    """Number of live executors of a session."""
    blocks = spark.sparkContext._jsc.sc().getExecutorMemoryStatus()  # noqa: SLF001 - PySpark has no other way
    return int(blocks.size()) - 1  # one is the driver


def check_folder(spark: SparkSession, master: str, folder: Path) -> None:
    """Check that executors and this process share a folder, and can write and read it.

    Args:
        spark: a session on a cluster.
        master: for messages.
        folder: the checkpoint folder; a test file is written below it, and removed.

    Raises:
        EnvironmentProblem: it is another folder there, or not writable.
    """
    tried, rows = folder / f"tried-{time.time_ns()}", max(2, spark.sparkContext.defaultParallelism)
    too_late = threading.Timer(EXECUTORS_WITHIN_S, spark.sparkContext.cancelAllJobs)
    too_late.daemon = True
    place = f"checkpoints {folder}, spark.master {master}"
    hint = (
        "set `checkpoints` to a folder that this machine and every worker have at the same path, "
        "such as a mount of one file server, and let nodes and executors run as the same user."
    )
    too_late.start()
    try:
        spark.range(0, rows, 1, rows).write.csv(tried.as_uri())
        found = sorted(line for part in tried.glob("part-*") for line in part.read_text().split())
    except (PySparkException, Py4JError, OSError) as error:
        raise EnvironmentProblem(
            f"executors cannot write the folder of checkpoints: {reason(error)}",
            place=place,
            hint=hint,
        ) from error
    finally:
        too_late.cancel()
        shutil.rmtree(tried, ignore_errors=True)
    if found != sorted(map(str, range(rows))):
        raise EnvironmentProblem(
            "what executors write into the folder of checkpoints is not seen here",
            place=place,
            hint=hint,
        )


def reason(error: Exception) -> str:
    """The first non-empty line of an error; for Java errors of Java's message."""
    java = getattr(error, "java_exception", None)
    text = str(java) if java is not None else str(error)
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)


@dataclass
class ExecutorWatch:
    """Monitors whether a session on a cluster can still run queries.

    Args:
        master: for messages.
        count: returns the number of executors; raises Py4J's errors if Java is gone.
        stopped: whether the cluster has ended the application.
        now_s: steady time.
    """

    master: str
    count: Callable[[], int]
    stopped: Callable[[], bool]
    now_s: Callable[[], float] = time.monotonic
    _last_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._last_s = self.now_s()

    def trouble(self) -> MedusaError | None:
        """Why no lane can run in the session; None if they run, or may run again."""
        with suppress(Py4JError, OSError):  # Java has ended: `watch_session` reports that
            if self.stopped():
                return self._lost("the Spark master has ended this node's application")
            if self.count():
                self._last_s = self.now_s()
        without_s = self.now_s() - self._last_s
        if without_s <= EXECUTORS_WITHIN_S:
            return None
        return self._lost(f"the Spark master has given no executor for {without_s:.0f} s")

    def _lost(self, what: str) -> MedusaError:
        hint = f"{_ROOM}. Start the node again when there is room; another node may run it all."
        return UnavailableError(what, place=f"spark.master {self.master}", hint=hint)


def is_stopped(spark: SparkSession) -> bool:
    """Whether the session's context has ended, even if its Java process still runs."""
    return bool(spark.sparkContext._jsc.sc().isStopped())  # noqa: SLF001 - PySpark has no other way
