"""Meters of the lanes that run on a node: CPU time of their threads, records and bytes.

A thread notes its own CPU time when it has done something for a fragment, so that nothing of it is
lost when it ends. The Java thread of a query is asked inside each batch, where a call to Java is
executed in that thread. Tasks are metered by `task_times.py`, from the groups of jobs noted here.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from brokers.records import Ends
from pipeline.ids import FragmentId, Offset, TopicName
from pipeline.markers.commit_marker import CommitMarker
from pipeline.metering.readings import Flow, LaneUse
from pipeline.metering.record_sizes import bytes_read
from pipeline.spark.batch.facts import Engine
from pipeline.spark.query.lowered import AsOfCore

GROUPS_KEPT: Final = 8
"""Queries of a fragment whose tasks are metered: those that run, and the last that have ended."""
_BEAN: Final = "java.lang.management.ThreadMXBean"

_log = logging.getLogger(__name__)


class LaneMeters:
    """The meters of a node. Thread-safe; counts from the node's start on, for each fragment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._uses: dict[FragmentId, LaneUse] = {}
        self._groups: dict[str, FragmentId] = {}
        self._markers: dict[FragmentId, CommitMarker] = {}
        self._recent: set[FragmentId] = set()
        self._sizes: dict[TopicName, float] = {}
        self._unsized: dict[tuple[FragmentId, TopicName], float] = {}
        self._thread = threading.local()

    def query(self, fragment: FragmentId, spark: SparkSession) -> "QueryMeter":
        """The meter of one query of a fragment."""
        return QueryMeter(self, fragment, spark)

    def note(self, fragment: FragmentId) -> None:
        """Add what the calling thread has computed since it called this last, or began."""
        now_ns = time.thread_time_ns()
        before_ns = getattr(self._thread, "noted_ns", 0)
        self._thread.noted_ns = now_ns
        self._add(fragment, writing_ns=now_ns - before_ns)

    def started(self, fragment: FragmentId, marker: CommitMarker) -> None:
        """A lane begins to count from a marker."""
        with self._lock:
            self._markers[fragment] = marker

    def batch(self, fragment: FragmentId, marker: CommitMarker, bytes_out: int) -> None:
        """A batch was written.

        Args:
            fragment: whose.
            marker: of the batch.
            bytes_out: keys and values of its results.
        """
        self.note(fragment)
        with self._lock:
            before, self._markers[fragment] = self._markers.get(fragment, marker), marker
            self._recent.add(fragment)
            read = marker.totals.records_in - before.totals.records_in
            written = marker.totals.records_out - before.totals.records_out
            sized, unsized = bytes_read(read, before.end, marker.end, self._sizes)
            flow = Flow(max(0, read), max(0, written), sized, bytes_out)
            use = self._uses.get(fragment, LaneUse())
            self._uses[fragment] = replace(use, flow=use.flow.plus(flow))
            for topic, records in unsized.items():
                key = fragment, topic
                self._unsized[key] = self._unsized.get(key, 0.0) + records

    def sized(self, sizes: Mapping[TopicName, float]) -> None:
        """Count the bytes of records by these mean sizes, also of those read before the first."""
        with self._lock:
            self._sizes |= sizes
            for fragment, topic in [key for key in self._unsized if key[1] in sizes]:
                records = self._unsized.pop((fragment, topic))
                use, flow = self._uses[fragment], Flow(bytes_in=round(records * sizes[topic]))
                self._uses[fragment] = replace(use, flow=use.flow.plus(flow))

    def take_positions(self) -> Ends:
        """The most advanced positions of the lanes with a batch since the last call."""
        with self._lock:
            markers = [self._markers[one] for one in sorted(self._recent)]
            self._recent.clear()
        found: dict[TopicName, dict[int, Offset]] = {}
        for marker in markers:
            for at, offset in marker.end.items():
                known = found.setdefault(at.topic, {})
                known[at.partition] = max(offset, known.get(at.partition, offset))
        return found

    def java(self, fragment: FragmentId, group: str, spent_ns: int, *, uses_python: bool) -> None:
        """Add what the Java thread of a query has computed.

        Args:
            fragment: whose query.
            group: of its jobs.
            spent_ns: since the call before.
            uses_python: whether its tasks run Python functions in other processes.
        """
        with self._lock:
            if group not in self._groups:
                of_it = [one for one, at in self._groups.items() if at == fragment]
                for old in of_it[: 1 - GROUPS_KEPT]:
                    del self._groups[old]
                self._groups[group] = fragment
            use = self._uses.get(fragment, LaneUse())
            self._uses[fragment] = replace(use, uses_python=uses_python)
        self._add(fragment, planning_ns=spent_ns)

    @property
    def groups(self) -> Mapping[str, FragmentId]:
        """The fragment of each group of jobs."""
        with self._lock:
            return dict(self._groups)

    def tasks(self, spent_ns: Mapping[FragmentId, int]) -> Mapping[FragmentId, LaneUse]:
        """Add what tasks have computed; returns everything that was counted."""
        for fragment, ns in spent_ns.items():
            self._add(fragment, tasks_ns=ns)
        with self._lock:
            return dict(self._uses)

    def _add(
        self, fragment: FragmentId, planning_ns: int = 0, tasks_ns: int = 0, writing_ns: int = 0
    ) -> None:
        with self._lock:
            use = self._uses.get(fragment, LaneUse())
            self._uses[fragment] = replace(
                use,
                planning_ns=use.planning_ns + planning_ns,
                tasks_ns=use.tasks_ns + tasks_ns,
                writing_ns=use.writing_ns + writing_ns,
            )


class QueryMeter:
    """The meter of one query; called by the query's thread at the end of each batch.

    Args:
        meters: of the node.
        fragment: whose query.
        spark: its session.
    """

    def __init__(self, meters: LaneMeters, fragment: FragmentId, spark: SparkSession) -> None:
        self._meters = meters
        self._fragment = fragment
        self._spark = spark
        self._group = ""
        self._clock: Callable[[], int] = lambda: 0
        self._noted_ns = 0
        self._uses_python = False

    def __call__(self, engine: Engine) -> None:
        """Note the Java and the Python thread of a batch; never raises an error of Java."""
        self._meters.note(self._fragment)
        try:
            if not self._group:
                self._begin(engine)
            now_ns = self._clock()
        except (Py4JError, PySparkException) as error:  # Java is gone, which the lane notices
            _log.debug("the Java thread of a query is not metered: %s", error)
            return
        spent_ns, self._noted_ns = now_ns - self._noted_ns, now_ns
        self._meters.java(self._fragment, self._group, spent_ns, uses_python=self._uses_python)

    def _begin(self, engine: Engine) -> None:
        lowered = engine.lowered
        self._uses_python = bool(lowered.functions) or isinstance(lowered.core, AsOfCore)
        self._clock = _java_thread_clock(self._spark)
        self._group = str(engine.query.runId)


def _java_thread_clock(spark: SparkSession) -> Callable[[], int]:
    """Returns a function: CPU time in ns of the Java thread that executes the call.

    The class of Java's bean is not accessible from outside of its module, so the method is taken
    from its interface.
    """
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - py4j itself is needed
    jvm = gateway.jvm
    bean = jvm.java.lang.management.ManagementFactory.getThreadMXBean()
    kinds = gateway.new_array(jvm.java.lang.Class, 0)
    method = jvm.java.lang.Class.forName(_BEAN).getMethod("getCurrentThreadCpuTime", kinds)
    none = gateway.new_array(jvm.java.lang.Object, 0)
    return lambda: int(method.invoke(bean, none))
