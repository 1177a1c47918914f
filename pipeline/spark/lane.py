"""A stable lane: one fragment's query, from claim to stop.

Order of a start: the epoch is claimed before; initialise transactions (which fences the last
owner), read the marker, stop if its epoch is newer, decide what to start from, commit a copy of the
marker under the own epoch, start the query.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from brokers.kafka.producer import PlainProducer
from brokers.kafka.reader import read_last
from brokers.kafka.transactions import TransactionalWriter
from pipeline.boundaries.profile import profile
from pipeline.clock import Clock, Deadline
from pipeline.errors import (
    MedusaError,
    RefusedError,
    RetryError,
)
from pipeline.ids import Epoch, Incarnation, NetworkVersion, SchemaId, StreamName, TopicName
from pipeline.lanes import codec
from pipeline.lanes.events import FragmentId, LaneEvent, LaneStarted
from pipeline.lanes.markers import CommitMarker
from pipeline.lanes.positions import Positions
from pipeline.lanes.start import (
    BeginAt,
    Continue,
    FirstStart,
    adopted,
    decide_start,
    first_marker,
)
from pipeline.planner.digest import fragment_digest
from pipeline.planner.plan import Fragment
from pipeline.spark.checkpoints import Checkpoints, read_facts
from pipeline.spark.emit import KafkaReader, emit
from pipeline.spark.facts import Engine
from pipeline.spark.inspect import Inspector
from pipeline.spark.lower import lower
from pipeline.spark.lowered import Lowered
from pipeline.spark.sink import Sink, SinkContext, UnknownSchemasError
from pipeline.spark.surroundings import Surveyor

START_DEADLINE_S = 60.0
STOP_DEADLINE_S = 60.0
BOUNDARY_DEADLINE_S = 300.0
POLL_S = 1
LOCK_S = 0.05
RECORDS_PER_BATCH = 400_000
"""Bounds a batch's memory: about 110 bytes a record make some 100 MB in the driver."""
FETCH_WAIT_MS = 5
"""How long the broker may hold a fetch that finds nothing.

After each fetch Spark asks for the range of available offsets, on the connection on which the
consumer has already sent the next fetch; the broker answers in order. With Kafka's default of 500,
every batch that reads from a quiet partition, such as the advances, takes half a second. Spark only
fetches what it knows to be there, so a short wait costs nothing.
"""
SCHEMA_ROUNDS = 8
"""How often in a row one batch may meet new schema ids before the lane gives up."""


@dataclass(frozen=True, slots=True)
class LaneSettings:
    """Which lane: a fragment as one version of its network has it, under one ownership.

    `topic_ids`: the ids that its topics had when it was deployed.
    """

    fragment: Fragment
    version: NetworkVersion
    epoch: Epoch
    topic_ids: Mapping[TopicName, str]


@dataclass(frozen=True, slots=True)
class LaneHost:
    """What all lanes of a node share."""

    spark: SparkSession
    surveyor: Surveyor
    bootstrap_servers: str
    checkpoints: Path
    clock: Clock
    tell: Callable[[LaneEvent], None]

    def lane(self, settings: LaneSettings) -> "StableLane":
        """A lane on this node."""
        return StableLane(settings, self)


class _StoppingError(Exception):
    """Raised inside a batch to end a query that was asked to stop; nothing was written."""


class StableLane:
    """Runs one fragment until it is told to stop or cannot go on. One use only."""

    def __init__(self, settings: LaneSettings, host: LaneHost) -> None:
        self._settings = settings
        self._host = host
        self._clock = host.clock
        fragment = settings.fragment
        self._id = FragmentId(fragment.names.network, fragment.names.fragment)
        self._stop = threading.Event()
        self._in_batch = threading.Lock()
        self._raised: MedusaError | None = None
        label = f"{self._id.network}.{self._id.fragment}"
        self._log = logging.LoggerAdapter(logging.getLogger(__name__), {"fragment": label})

    def request_stop(self) -> None:
        """Let the current batch finish, then return from `run`. Safe from any thread."""
        self._stop.set()

    def run(self) -> None:
        """Start the lane and stay with it; returns after `request_stop`.

        Raises:
            FencedError: another epoch owns the fragment.
            InputError, BrokenInvariantError: starting again unasked would not help.
            RetryError, UnavailableError: starting again may help.
        """
        names = self._settings.fragment.names
        bootstrap = self._host.bootstrap_servers
        writer = TransactionalWriter(bootstrap, names.transactional_id, names.group)
        boundaries = PlainProducer(bootstrap, BOUNDARY_DEADLINE_S)
        try:
            self._run(writer, boundaries)
        except _StoppingError:
            return
        except PySparkException as error:
            raise self._raised or _from_spark(error) from error
        except (Py4JError, ConnectionError) as error:
            raise RetryError(f"Java does not answer: {_first_line(error)}") from error
        finally:
            writer.close()
            boundaries.close()

    def _run(self, writer: TransactionalWriter, boundaries: PlainProducer) -> None:
        deadline = Deadline.after(self._clock, START_DEADLINE_S, f"starting {self._id.fragment}")
        writer.start(deadline)
        marker = self._read_marker()
        lowered = self._lowered()
        checkpoints = Checkpoints(self._host.checkpoints, self._settings.fragment.names)
        marker, source = self._begin(marker, lowered, checkpoints)
        how = profile(self._settings.fragment)
        context = SinkContext(
            fragment=self._settings.fragment,
            id=self._id,
            version=self._settings.version,
            epoch=self._settings.epoch,
            profile=how,
            writer=writer,
            admin=self._host.surveyor.admin,
            output_partitions=lowered.encoding.partitions,
            boundaries=boundaries,
            clock=self._clock,
            tell=self._host.tell,
        )
        sink = Sink(context, marker)
        sink.start(marker)
        folder = checkpoints.create(
            self._settings.epoch,
            marker.incarnation,
            fragment_digest(self._settings.fragment),
            source,
        )
        epoch = self._settings.epoch
        self._host.tell(LaneStarted(self._id, epoch, marker.incarnation, marker, how))
        for _ in range(SCHEMA_ROUNDS):
            try:
                self._query(lowered, folder, sink)
            except PySparkException:
                if not isinstance(self._raised, UnknownSchemasError):
                    raise
                self._log.info("%s: looking them up", self._raised.message)
                lowered = self._lowered(self._raised.ids)
        raise RetryError("new schema ids came faster than they could be looked up")

    def _begin(
        self, marker: CommitMarker | None, lowered: Lowered, checkpoints: Checkpoints
    ) -> tuple[CommitMarker, Path | None]:
        """The marker to commit first, and the checkpoint folder to go on from (None: empty)."""
        epoch, now_ms = self._settings.epoch, self._clock.now_ms()
        folder = checkpoints.newest(epoch)
        found = read_facts(folder, lowered) if folder else None
        if found is not None and found[1] != fragment_digest(self._settings.fragment):
            raise RefusedError(
                "the checkpoint was made by another version of this fragment",
                place=str(folder),
                hint="deploy the version that made it, or deploy under another network name",
            )
        place = f"fragment {self._id.fragment}, checkpoint {folder or 'none'}"
        start = decide_start(marker, found[0] if found else None, epoch, place)
        match start:
            case FirstStart():
                positions = self._host.surveyor.start_positions(lowered)
                return first_marker(epoch, self._incarnation(), positions, now_ms), None
            case BeginAt():
                return adopted(start.marker, epoch, now_ms), None
            case Continue():
                return adopted(start.marker, epoch, now_ms), folder

    def _incarnation(self) -> Incarnation:
        return Incarnation(f"{self._settings.epoch}-{self._clock.now_ms()}")

    def _read_marker(self) -> CommitMarker | None:
        names = self._settings.fragment.names
        records = read_last(self._host.bootstrap_servers, names.markers, 0, 1, START_DEADLINE_S)
        if not records or records[-1].value is None:
            return None
        return codec.decode_marker(records[-1].value, f"topic {names.markers}")

    def _lowered(self, new_ids: tuple[SchemaId, ...] = ()) -> Lowered:
        fragment = self._settings.fragment
        return lower(
            fragment, self._host.surveyor.survey(fragment, self._settings.topic_ids, new_ids)
        )

    # --- one query --------------------------------------------------------------------------

    def _query(self, lowered: Lowered, folder: Path, sink: Sink) -> None:
        """Run a query until it fails or is stopped, which raises as well."""
        self._raised = None
        options = {
            "kafka.bootstrap.servers": self._host.bootstrap_servers,
            "kafka.isolation.level": "read_committed",
            "kafka.fetch.max.wait.ms": str(FETCH_WAIT_MS),
        }
        inspector = Inspector(self._host.spark, lowered, options)
        limits = {"maxOffsetsPerTrigger": str(RECORDS_PER_BATCH), "failOnDataLoss": "true"}
        reader = KafkaReader(self._host.spark, {**options, **limits}, _starts(sink.marker.end))
        label = f"{self._id.network}.{self._id.fragment}"
        self._host.spark.sparkContext.setLocalProperty("spark.scheduler.pool", label)
        rows = emit(lowered, reader, sink.marker.incarnation)
        holder: list[Engine] = []
        ready = threading.Event()

        def write(batch_rows: DataFrame, batch: int) -> None:
            ready.wait(START_DEADLINE_S)
            self._write(batch_rows, batch, holder[0], sink, inspector)

        query = (
            rows.writeStream.outputMode("append")
            .queryName(f"{label}.{self._settings.epoch}")
            .option("checkpointLocation", folder.as_uri())
            .foreachBatch(write)
            .start()
        )
        holder.append(Engine(query, lowered))
        ready.set()
        self._watch(query)

    def _write(
        self, rows: DataFrame, batch: int, engine: Engine, sink: Sink, inspector: Inspector
    ) -> None:
        # Whoever ends the query holds the lock and waits for this call, so never wait for long.
        while not self._in_batch.acquire(timeout=LOCK_S):
            if self._stop.is_set():
                raise _StoppingError
        try:
            if self._stop.is_set():
                raise _StoppingError
            sink.write(rows, batch, engine, inspector)
        except MedusaError as error:
            self._raised = error
            raise
        finally:
            self._in_batch.release()

    def _watch(self, query: StreamingQuery) -> None:
        while not self._stop.is_set():
            if query.awaitTermination(POLL_S):
                raise RetryError("the query ended by itself")
        self._end(query)

    def _end(self, query: StreamingQuery) -> None:
        """Stop between two batches: inside one, Spark's own error handling would fail."""
        if not self._in_batch.acquire(timeout=STOP_DEADLINE_S):
            raise RetryError("the last batch did not finish in time")
        try:
            query.stop()
        except PySparkException as error:
            self._log.debug("the query ended while it was stopped: %s", _first_line(error))
        finally:
            self._in_batch.release()
        raise _StoppingError


def _starts(end: Positions) -> dict[StreamName, dict[TopicName, dict[int, int]]]:
    starts: dict[StreamName, dict[TopicName, dict[int, int]]] = {}
    for at, offset in end.items():
        starts.setdefault(at.input, {}).setdefault(at.topic, {})[at.partition] = int(offset)
    return starts


_DATA_LOSS = ("Some data may have been lost", "KAFKA_DATA_LOSS", "OffsetOutOfRange")


def _from_spark(error: PySparkException) -> MedusaError:
    """Spark's failure in our words: the only translation of its errors."""
    text = str(error)
    if any(sign in text for sign in _DATA_LOSS):
        return RefusedError(
            "an input no longer holds records that were not read yet",
            hint="its retention overtook the lane, or the topic was made again; the log of the "
            "node names the partition and the offsets",
        )
    return RetryError(f"the query failed: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:500]
