"""Steering of a running query: where each batch ends, and its watermark, are set from Python.

Spark asks `KafkaMicroBatchStream.kafkaOffsetReader` of each source where a batch may end, and only
then reads the watermark tracker. Our own object in its place is asked instead, and waits in the
question until a batch is planned: a query that waits executes nothing and polls nothing. While it
waits, nothing else reads the watermark, so both are set together. Only this module depends on it.

Rules that Spark imposes:

- The first source that is asked decides for all; the others of that round get the same decision.
- The watermark may be set only inside the question. The answer must bring records, or a watermark
  that is above the last one: otherwise no batch follows, and the watermark must not change again.
- The objects of the sources exist once the query runs: the steering begins in its first batch,
  which is planned in the checkpoint.
- A query that waits cannot be stopped: the question has to be answered first.
- An error in the question ends the query, between two batches; so a query that is done ends.
"""

import json
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from pipeline.errors import BrokenInvariantError, EnvironmentProblem, MedusaError
from pipeline.ids import Millis
from pipeline.markers.positions import Positions
from pipeline.spark.batch.facts import Engine
from pipeline.spark.run.planned_batch import offsets_of
from pipeline.spark.session.java_log import end_not_logged

_STREAM: Final = "org.apache.spark.sql.kafka010.KafkaMicroBatchStream"
_READER: Final = "org.apache.spark.sql.kafka010.KafkaOffsetReader"
_FIELD: Final = "kafkaOffsetReader"
_METHODS: Final = frozenset(
    {
        "close",
        "driverKafkaParams",
        "fetchEarliestOffsets",
        "fetchLatestOffsets",
        "fetchPartitionOffsets",
        "getOffsetRangesFromResolvedOffsets",
        "getOffsetRangesFromUnresolvedOffsets",
        "fetchGlobalTimestampBasedOffsets",
        "fetchSpecificOffsets",
        "fetchSpecificTimestampBasedOffsets",
        "maxOffsetFetchAttempts",
        "offsetFetchAttemptIntervalMs",
    }
)
"""The methods of Spark's reader of offsets."""
_DEFECTS: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""What a defect of the lane's own code raises; Java's and py4j's errors are others."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The next batch of a query.

    Args:
        end: where it ends, of every partition.
        watermark_ms: the watermark that comes into force; None: that of the batch before.
        is_batch: whether a batch follows; False: the query is to end, and `end` is where it is.
        begin: where it begins, of partitions that do not go on at the end of the batch before.
    """

    end: Positions
    watermark_ms: Millis | None
    is_batch: bool = True
    begin: Positions = field(default_factory=dict)


Plan = Callable[[], Answer | None]
"""Waits for the next batch; None: the query is done."""


class QueryDoneError(MedusaError):
    """Ends a query whose plan has no further batch; Spark has committed the last one."""

    code = "query-done"


class Steering:
    """Plans the batches of one query while it runs.

    Args:
        spark: the query's session.
        plan: waits for the next batch; None: the query is done, and ends. If it is to be stopped,
            returns the end of the last batch at once. It is called in a thread of Java's, between
            two batches.
    """

    def __init__(self, spark: SparkSession, plan: Plan) -> None:
        self.spark = spark
        self._plan: Plan | None = plan
        self._lock = threading.Lock()
        self._begun = False
        self._end: Positions = {}
        self._begin: Positions = {}
        self._asked: set[int] = set()
        self._unasked: set[int] = set()
        self._is_due = False
        self._readers: list[SteeredReader] = []
        self._quiet = ExitStack()
        self.raised: MedusaError | None = None
        """The error that has ended the query, if planning has failed."""

    def begin(self, engine: Engine) -> None:
        """Take over a query; to be called inside each batch, takes effect in the first.

        Raises:
            BrokenInvariantError: the query's sources are not those of its plan.
        """
        self._is_due = False
        if self._begun:
            return
        self._begun = True
        sources, leaves = engine.stream.sources(), engine.lowered.leaves
        if sources.size() != len(leaves):
            raise BrokenInvariantError(
                f"the query has {sources.size()} sources, its plan {len(leaves)}"
            )
        steered: list[Any] = []
        for leaf in range(len(leaves)):
            source = sources.apply(leaf)
            if any(source.equals(one) for one in steered):  # one source of two leaves
                continue
            steered.append(source)
            self._asked.add(leaf)
            field = source.getClass().getDeclaredField(_FIELD)
            field.setAccessible(True)
            own = source.kafkaOffsetReader()
            reader = SteeredReader(own, engine, self, leaf)
            self._readers.append(reader)
            field.set(source, reader)

    def ends(self, engine: Engine, leaf: int) -> str:
        """The ends of a leaf in the next batch, as JSON; waits for the plan."""
        try:
            with self._lock:
                if not self._unasked:
                    self._next(engine)
                    self._unasked = set(self._asked)
                elif leaf not in self._unasked:
                    text = f"Spark asks source {leaf} twice for the end of a batch"
                    raise BrokenInvariantError(text)
                self._unasked.discard(leaf)
                return json.dumps(offsets_of(self._end, engine.lowered.leaves[leaf]))
        except MedusaError as error:
            self._fail(error, engine)
            raise
        except _DEFECTS as error:  # Spark would report it as a failure of its own
            failure = BrokenInvariantError(
                f"the next batch cannot be planned: {type(error).__name__}: {error}",
                hint="nothing of it was published; keep the log of the node, and report this",
            )
            self._fail(failure, engine)
            raise failure from error

    def _fail(self, error: MedusaError, engine: Engine) -> None:
        self.raised = error
        # The lane logs the error; Spark would log its own stack for it.
        self._quiet.enter_context(end_not_logged(engine.query, self.spark))

    def begins(self, engine: Engine, leaf: int) -> str | None:
        """Where partitions of a leaf begin anew in the present batch, as JSON; None: none does."""
        source = engine.lowered.leaves[leaf]
        found = {at: offset for at, offset in self._begin.items() if at.input == source}
        return json.dumps(offsets_of(found, source)) if found else None

    def plan_by(self, plan: Plan) -> None:
        """Plan by another function; if one waits already, what it returns does not count."""
        self._plan = plan

    def close(self) -> None:
        """Release the query: Java keeps the readers as long as it, and they would keep it."""
        self._plan = self.raised = None
        for reader in self._readers:
            reader.release()
        self._readers.clear()
        self._quiet.close()

    def _next(self, engine: Engine) -> None:
        if self._is_due:
            raise BrokenInvariantError(
                "Spark has not executed the batch that was planned",
                hint="nothing of it was published; keep the log of the node, and report this",
            )
        answer = self._planned()
        if answer is None:
            raise QueryDoneError("all planned batches were executed")
        self._end, self._is_due = answer.end, answer.is_batch
        self._begin = answer.begin
        if answer.watermark_ms is not None:
            set_watermark(engine, answer.watermark_ms)

    def _planned(self) -> Answer | None:
        """The answer of the plan, or of the one that has taken its place meanwhile."""
        asked: Plan | None = None
        answer: Answer | None = None
        while (plan := self._plan) is not asked and plan is not None:
            asked, answer = plan, plan()
        if asked is None:
            raise BrokenInvariantError("a query that has ended asks for a batch")
        return answer


def set_watermark(engine: Engine, watermark_ms: Millis) -> None:
    """Set the watermark of the next batch; inside `foreachBatch`, or inside the question."""
    engine.stream.watermarkTracker().setWatermark(watermark_ms)


class SteeredReader:
    """Answers where a batch ends; Spark's own reader of offsets answers everything else.

    Java calls its methods by their names, one at a time. Each answer is kept until the next one of
    the method: py4j has Java forget an object that Python no longer refers to, which may be before
    Java has taken it over from the answer.
    """

    def __init__(self, own: Any, engine: Engine, steering: Steering, leaf: int) -> None:
        self._own, self._leaf = own, leaf
        self._engine: Engine | None = engine
        self._steering: Steering | None = steering
        self._answers: dict[str, Any] = {}

    def release(self) -> None:
        """Drop everything: nothing is asked any more."""
        self._own = self._engine = self._steering = None
        self._answers.clear()

    def fetchLatestOffsets(self, _known: Any) -> Any:  # noqa: N802 - Java's name
        """Where the next batch ends, as a map of Scala's."""
        if self._steering is None or self._engine is None:
            raise BrokenInvariantError("a query that has ended asks for a batch")
        ends = self._steering.ends(self._engine, self._leaf)
        jvm: Any = self._steering.spark.sparkContext._jvm  # noqa: SLF001 - the same
        offsets = jvm.org.apache.spark.sql.kafka010.JsonUtils.partitionOffsets(ends)
        return self._kept("fetchLatestOffsets", offsets)

    def getOffsetRangesFromResolvedOffsets(  # noqa: N802 - Java's name
        self, begin: Any, end: Any, lost: Any
    ) -> Any:
        """The ranges of the next batch; a partition may begin beyond the end of the last one."""
        name = "getOffsetRangesFromResolvedOffsets"
        if self._steering is not None and self._engine is not None:
            anew = self._steering.begins(self._engine, self._leaf)
            if anew is not None:
                jvm: Any = self._steering.spark.sparkContext._jvm  # noqa: SLF001 - the same
                offsets = jvm.org.apache.spark.sql.kafka010.JsonUtils
                known = json.loads(str(offsets.partitionOffsets(begin)))
                for topic, there in json.loads(anew).items():
                    known[topic] = {**known.get(topic, {}), **there}
                begin = offsets.partitionOffsets(json.dumps(known))
        return self._kept(name, self._own.getOffsetRangesFromResolvedOffsets(begin, end, lost))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """A method of Spark's own reader."""
        method = getattr(self._own, name)

        def call(*arguments: Any) -> Any:
            return self._kept(name, method(*arguments))

        return call

    def _kept(self, name: str, answer: Any) -> Any:
        self._answers[name] = answer
        return answer

    class Java:
        """The interface that Java sees."""

        implements: ClassVar = [_READER]


def check_steerable(spark: SparkSession) -> None:
    """Check that this Spark has what the steering uses.

    Raises:
        EnvironmentProblem: it lacks it.
    """
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - the only way to the engine's objects
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    is_abstract = jvm.java.lang.reflect.Modifier.isAbstract
    try:
        stream = jvm.java.lang.Class.forName(_STREAM, False, loader)
        reader = jvm.java.lang.Class.forName(_READER, False, loader)
        fields = {str(field.getName()) for field in stream.getDeclaredFields()}
        methods = {str(m.getName()) for m in reader.getMethods() if is_abstract(m.getModifiers())}
    except Py4JJavaError as error:
        problem = str(error.java_exception)
    else:
        problem = "" if _FIELD in fields else f"{_STREAM} has no field {_FIELD}"
        if methods != _METHODS:
            problem = f"the methods of {_READER} are {', '.join(sorted(methods))}"
    if problem:
        raise EnvironmentProblem(
            f"Spark {spark.version} cannot be steered: {problem}",
            hint="use the version of PySpark that Medusa requires",
        )
