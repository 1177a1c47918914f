"""Replay of a fragment's results: bounded jobs over ranges of its input log.

The plan of the lane, run by Spark as a batch job: every record of the ranges counts, so nothing is
late, and no state, checkpoint, marker or group is changed. Redriven copies are not
read: each record counts at its original place, validated by the present schemas of the registry.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from brokers.embedded.java import find_java
from brokers.kafka.servers import Brokers
from brokers.kafka_interface import TopicAdmin
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import Millis, Offset, SchemaHandle, StreamName, TopicName
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.markers.positions import InputPartition
from pipeline.planner.plan import Fragment
from pipeline.replay.period import Period
from pipeline.replay.ranges import Range
from pipeline.replay.write import Result
from pipeline.settings import Settings
from pipeline.spark.batch.inspection import most_frequent
from pipeline.spark.query import hidden
from pipeline.spark.query.emit import emit, emit_path, unknown_schemas
from pipeline.spark.query.hidden import UNKNOWN_SCHEMA, reason_of
from pipeline.spark.query.kinds import kind_of
from pipeline.spark.query.lower import lower
from pipeline.spark.query.lowered import Keep, Lowered
from pipeline.spark.query.lowered import Path as Way
from pipeline.spark.query.placing import placed
from pipeline.spark.query.readers import RangeReader, read_options
from pipeline.spark.run.schema_resolver import SchemaResolver
from pipeline.spark.run.spark_errors import first_line, lost_data
from pipeline.spark.session.command_session import command_session
from pipeline.spark.session.session import open_session, session_settings
from schemas.client import RegistryClient

SCHEMA_ROUNDS = 8
LOG_NAME = "replay.out"
"""Log file of the last replay's Java process, in the folder for logs."""
OFFSETS_PER_TASK = 200_000
"""Input offsets per part; sorted results are fetched part by part."""


@dataclass(frozen=True, slots=True)
class Servers:
    """Servers that a replay reads from."""

    brokers: Brokers
    admin: TopicAdmin
    registry: RegistryClient


@dataclass
class Recomputer:
    """Recomputes one fragment. Every method raises `RetryError` if Spark fails."""

    spark: SparkSession
    servers: Servers
    fragment: Fragment
    topic_ids: Mapping[TopicName, str]
    failed: Counter[str] = field(default_factory=Counter)
    """Number of results that could not be computed, by reason, among those fetched."""
    _missing: set[SchemaHandle] = field(default_factory=set)
    _known: tuple[SchemaHandle, ...] = ()

    def event_time(self, at: InputPartition, offset: Offset) -> Millis:
        """Compute the event time of one record of an input.

        Raises:
            RefusedError: there is no such record, or it has no event time.
        """
        ranges = (Range(at.input, at.topic, at.partition, offset, Offset(offset + 1), False),)
        time = F.unix_millis(hidden.EVENT_TIME).alias("at")

        def look(lowered: Lowered) -> list[Row]:
            way = next(path for path in lowered.paths if path.source == at.input)
            rows = emit_path(lowered, replace(way, steps=()), self._reader(ranges))
            return rows.select(time, F.col(hidden.REASON).alias("word")).collect()

        found = self._with_schemas(look, ranges)
        place = f"topic {at.topic}, partition {at.partition}, offset {offset}"
        if not found:
            raise RefusedError("there is no committed record", place=place)
        if found[0]["at"] is None or found[0]["word"] is not None:
            raise RefusedError(
                f"the record has no event time: {found[0]['word']}",
                place=place,
                hint="name a record before it, or a time.",
            )
        return Millis(found[0]["at"])

    def left_out(self, ranges: tuple[Range, ...], period: Period) -> Mapping[str, int]:
        """Number of records of the ranges that cannot be processed, by reason."""
        word = F.split(F.col(hidden.REASON), ":")[0].alias("word")

        def look(lowered: Lowered) -> list[Row]:
            found: list[Row] = []
            for path in _within(lowered, period).paths:
                rows = emit_path(lowered, path, self._reader(ranges)).where(_is_wrong(path))
                found += rows.groupBy(word).agg(F.count("*").alias("records")).collect()
            return found

        counts = Counter[str]()
        for row in self._with_schemas(look, ranges):
            counts[reason_of(row["word"]).value] += row["records"]
        return dict(counts.most_common())

    def results(self, ranges: tuple[Range, ...], period: Period) -> Iterator[Result]:
        """Compute the results, in order of time if the fragment has state, else of input.

        `left_out` must be called first: it looks up the schemas of the ranges.
        """
        lowered = _within(self._lower(), period)
        parts = max(2, sum(one.offsets for one in ranges) // OFFSETS_PER_TASK)
        self.spark.conf.set("spark.sql.shuffle.partitions", str(parts))
        with _translated():
            rows = emit(lowered, self._reader(ranges))
            if lowered.traits.stateful:
                rows = _in_period(rows, period).sort("timestamp_ms")
            for row in rows.toLocalIterator():
                if row["reason"] is not None:
                    if lowered.traits.stateful:  # else it is a record without a result
                        self.failed[str(row["reason"]).partition(":")[0]] += 1
                    continue
                key = None if row["key"] is None else bytes(row["key"])
                result = bytes(row["id"]) if lowered.ids else None
                value = bytes(row["value"])
                hashed = value if key is None else key
                (partition,) = placed((row["partition"],), (hashed,), lowered.encoding.partitions)
                yield key, value, row["timestamp_ms"], partition, result

    def _with_schemas(
        self, look: Callable[[Lowered], list[Row]], ranges: tuple[Range, ...]
    ) -> list[Row]:
        """Read the ranges again until every schema in them was looked up."""
        for _ in range(SCHEMA_ROUNDS):
            lowered = self._lower()
            with _translated():
                found = look(lowered)
                if not any(row["word"] == UNKNOWN_SCHEMA for row in found):
                    return found
                unknown = self._unknown(lowered, ranges)
            there = self._resolver().look_up(unknown)
            if not there:
                return found
            self._known += there
        raise RetryError("new schemas came faster than they could be looked up")

    def _unknown(self, lowered: Lowered, ranges: tuple[Range, ...]) -> tuple[SchemaHandle, ...]:
        reader, read = self._reader(ranges), {one.input for one in ranges}
        return most_frequent(
            (row["handle"], row["count"])
            for source in lowered.sources
            if source.input in read
            for row in unknown_schemas(source, reader).collect()
        )

    def _lower(self) -> Lowered:
        survey = self._resolver().resolve(self.fragment, self.topic_ids, self._known)
        return lower(self.fragment, survey)

    def _resolver(self) -> SchemaResolver:
        return SchemaResolver(
            self.servers.registry,
            self.servers.admin,
            lambda: frozenset(self._missing),
            self._missing.add,
        )

    def _reader(self, ranges: tuple[Range, ...]) -> RangeReader:
        found: dict[StreamName, dict[TopicName, dict[int, tuple[int, int]]]] = {}
        for one in ranges:
            topics = found.setdefault(one.input, {})
            topics.setdefault(one.topic, {})[one.partition] = (one.start, one.end)
        options = {**read_options(self.servers.brokers), "failOnDataLoss": "true"}
        return RangeReader(self.spark, options, found)


@contextmanager
def open_recomputer(
    settings: Settings, servers: Servers, fragment: Fragment, topic_ids: Mapping[TopicName, str]
) -> Iterator[Recomputer]:
    """A recomputer with its own Spark session, for the duration of the block.

    Raises:
        EnvironmentProblem: Java or a jar is missing.
        KeyboardInterrupt: Ctrl-C was pressed; its Java process has ended.
    """
    java, data = find_java(os.environ), Path(settings.data)
    log = data / "logs" / LOG_NAME
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix="replay-", dir=data, ignore_cleanup_errors=True
    ) as scratch:
        wanted = session_settings(settings, "medusa-replay", Path(scratch), java)
        with command_session(partial(open_session, wanted), log) as spark:
            yield Recomputer(spark, servers, fragment, topic_ids)


def _within(lowered: Lowered, period: Period) -> Lowered:
    """The plan restricted to records of a period; no other record affects its results."""
    at_ms = kind_of(lowered).event_ms(lowered)
    where = f"{at_ms} >= {int(period.input_from_ms)}"
    if period.input_until_ms is not None:
        where += f" AND {at_ms} < {int(period.input_until_ms)}"
    first = Keep(where, ())
    return replace(
        lowered, paths=tuple(replace(path, steps=(first, *path.steps)) for path in lowered.paths)
    )


def _in_period(rows: DataFrame, period: Period) -> DataFrame:
    rows = rows.where(F.col("timestamp_ms") >= int(period.results_from_ms))
    if period.results_until_ms is None:
        return rows
    return rows.where(F.col("timestamp_ms") < int(period.results_until_ms))


def _is_wrong(path: Way) -> Column:
    """Invalid records; one that no path can process counts once, on its source's first path."""
    reason = F.col(hidden.REASON)
    return reason.isNotNull() if path.first else reason.startswith(Reason.EVALUATION_FAILED.value)


@contextmanager
def _translated() -> Iterator[None]:
    """Translate errors of Spark that leave the block."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if lost_data(error):
            raise RefusedError(
                "an input lost records while it was read",
                hint="its retention has reached them: begin later.",
            ) from error
        raise RetryError(f"Spark failed: {first_line(error)}") from error
    except (Py4JError, ConnectionError) as error:
        raise RetryError(f"Java does not answer: {first_line(error)}") from error
