"""CPU time of Spark's tasks, by the group of their job; read from Spark's own store of stages.

A group is the run of a streaming query. A stage is counted once, when it has ended. The store keeps
the last thousand stages and jobs; what it drops between two reads is counted to no group.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from pipeline.errors import UnavailableError
from pipeline.spark.session.ended_stages import FIELDS, EndedStages, by_group, first_job

_STATUS: Final = "org.apache.spark.status"
_BY_END, _BY_ID = "completionTime", "__main__"


class TaskTimes:
    """Reads the increase of task times since the last read. Used by one thread.

    Args:
        spark: the session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._mapper: Any = None
        self._stages = EndedStages()

    def read(self) -> Mapping[str, int]:
        """CPU time in ns of the stages that have ended since the last read, by group.

        Raises:
            UnavailableError: Java does not answer.
            BrokenInvariantError: this Spark stores stages in another form.
        """
        try:
            return self._read()
        except Py4JError as error:
            text = str(error).partition("\n")[0]
            raise UnavailableError(f"the times of tasks cannot be read: {text}") from error

    def _read(self) -> Mapping[str, int]:
        # Only some fields are fetched: each stage has those of hundreds of accumulators. A time in
        # ms is a Long for py4j, as the index is; a number of a job is an Integer.
        tree = self._stored("StageDataWrapper", _BY_END, self._stages.last_ms)
        columns = [json.loads(str(tree.findValues(name).toString())) for name in FIELDS]
        ended = self._stages.take(dict(zip(FIELDS, columns, strict=True)))
        if not ended:
            return {}
        jobs = self._stored("JobDataWrapper", _BY_ID, first_job(ended))
        return by_group(ended, json.loads(str(jobs.toString())))

    def _stored(self, kind: str, index: str, first: int) -> Any:
        """What is stored of a kind, from a value of an index on, as a tree of JSON in Java."""
        context: Any = self._spark.sparkContext
        jvm = context._jvm  # noqa: SLF001 - the only way to the engine's objects
        status = jvm.org.apache.spark.status
        if self._mapper is None:
            self._mapper = status.api.v1.JacksonMessageWriter().mapper()
        loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
        store = context._jsc.sc().statusStore().store()  # noqa: SLF001 - the same
        view = store.view(jvm.java.lang.Class.forName(f"{_STATUS}.{kind}", True, loader))
        return self._mapper.valueToTree(status.KVUtils.viewToSeq(view.index(index).first(first)))
