"""The tentative topic of one lane: writes results of forks, and settles them by stable ones.

Results are registered before they are sent, so no settlement misses one. Undos are delivered before
the done marks that follow on them. What a killed process has left is settled by the next one: the
topic itself has the state. Settling needs the stable topic, publishing does not: a broker that does
not answer may be the reason why there are tentative results.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from brokers.kafka_interface import (
    Isolation,
    KafkaCluster,
    NoSuchTopicError,
    RecordReader,
    RecordWriter,
    TopicAdmin,
    complete,
)
from brokers.records import Ends, KafkaRecord
from pipeline.errors import BrokenInvariantError, MedusaError, RefusedError, RetryError
from pipeline.ids import Epoch, Millis, Offset, TopicId, TopicName
from pipeline.lanes.result_headers import RESULT_ID, WRITTEN_TO
from pipeline.lanes.tentative_state import NONE_YET, TentativeCounts
from pipeline.spark.batch.results import Results
from pipeline.tentative.generation import Generation, following
from pipeline.tentative.progress import Progress
from pipeline.tentative.records import (
    TentativeRecord,
    TentativeResult,
    Unread,
    decode,
    digest,
    done_marks,
    encode,
)
from pipeline.tentative.restoring import restored
from pipeline.tentative.settling import Settling

TIMEOUT_S: Final = 20.0
DELIVERY_S: Final = 10.0
READ_AT_ONCE: Final = 10_000


@dataclass(frozen=True, slots=True)
class Places:
    """The topics of a lane with tentative results.

    Args:
        stable: of its stable results.
        stable_id: Kafka's id of that topic.
        tentative: of its tentative ones.
    """

    stable: TopicName
    stable_id: TopicId
    tentative: TopicName


@dataclass(frozen=True, slots=True)
class _Due:
    """A promise that is to be settled when all that was written to the stable topic is visible."""

    promised_ms: Millis
    written: Mapping[int, Offset]


class TentativeTopic:
    """Writes and settles the tentative results of one lane. Thread-safe.

    Args:
        places: its topics.
        kafka: opens readers and writers.
        admin: of the same cluster.
    """

    def __init__(self, places: Places, kafka: KafkaCluster, admin: TopicAdmin) -> None:
        self._places = places
        self._kafka = kafka
        self._admin = admin
        self._lock = threading.Lock()
        self._settling: Settling | None = None
        self._producer: RecordWriter | None = None
        self._reader: RecordReader | None = None
        self._starts: Mapping[int, Offset] = {}
        self._due: _Due | None = None
        self._partitions = 0
        self._newest: Generation | None = None
        self._counts = NONE_YET
        self._refused_to: tuple[Generation, Millis] | None = None

    @property
    def counts(self) -> TentativeCounts:
        """What became of the results."""
        settling = self._settling
        return replace(self._counts, open_results=0 if settling is None else settling.open_results)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to settle."""
        settling = self._settling
        return settling is not None and not settling.unsettled

    def resume(self, output_ends: Ends) -> None:
        """Take over what an earlier process has left, unless that was done; before anything else.

        Args:
            output_ends: from where on the stable results are read, if nothing earlier is open.

        Raises:
            MedusaError: Kafka does not answer, or a topic does not exist.
        """
        with self._lock:
            if self._settling is not None:
                return
            self._partitions = self._counted()
            found = restored(self._left(), self._partitions)
            starts = dict(output_ends.get(self._places.stable, {}))
            first_ms = found.settling.first_open_ms
            if first_ms is not None:
                since = self._admin.offsets_for_time(self._places.stable, first_ms)
                starts = {at: min(offset, starts.get(at, offset)) for at, offset in since.items()}
            self._starts, self._due = starts, None
            self._reader = self._kafka.reader(TIMEOUT_S)
            self._producer = self._kafka.producer(DELIVERY_S)
            self._settling = found.settling

    def begin(self, epoch: Epoch, output_ends: Ends) -> Generation:
        """The generation of the next fork.

        Args:
            epoch: of the lane.
            output_ends: all stable results of batches that the fork executes, too, are behind.

        Raises:
            MedusaError: Kafka does not answer, or the topic does not exist.
        """
        with self._lock:
            settling = self._begun
            self._partitions = self._counted()
            if not settling.unsettled:  # nothing is missing before
                self._starts = dict(output_ends.get(self._places.stable, {}))
            known = [one for one in (settling.newest, self._newest) if one is not None]
            return following(max(known, default=None), epoch)

    def publish(self, generation: Generation, made: Sequence[TentativeResult]) -> int:
        """Send results of a fork that are not settled yet; returns their number.

        Raises:
            RefusedError: too many results are open.
            RetryError: the topic was resumed since the fork has published, which has ended it.
            MedusaError: they were not delivered.
        """
        if not made:
            return 0
        with self._lock:
            settling = self._begun
            if settling.has_ended(generation):  # else nothing of it would be accepted any more
                raise RetryError(
                    f"generation {generation} has ended: what is not settled was read again",
                    place=f"topic {self._places.tentative}",
                )
            if (added := settling.added(made)) > settling.room:
                raise RefusedError(
                    f"{settling.open_results} tentative results are open: {added} more are too "
                    "many",
                    place=f"topic {self._places.tentative}",
                    hint="nothing has to be done: tentative results come again once stable ones "
                    "have settled these",
                )
            registered = settling.register(made)
            accepted = registered.accepted
            self._newest = generation  # its number counts as used, also if its topic is lost
            if registered.refused:
                last_ms = max(one.timestamp_ms for one in registered.refused)
                self._refused_to = generation, last_ms
            self._send(accepted)
            self._counts = replace(self._counts, published=self._counts.published + len(accepted))
            return len(accepted)

    def report(self, progress: Progress) -> None:
        """Write how far a fork is, for the forks of those that read the output.

        Its results are incomplete up to the last one that was refused, since that was stable.

        Raises:
            MedusaError: it was not delivered.
        """
        with self._lock:
            if self._settling is None or self._settling.has_ended(progress.generation):
                return
            refused = self._refused_to
            if refused is not None and refused[0] == progress.generation:
                progress = replace(progress, begins_ms=max(refused[1], progress.begins_ms))
            producer = self._producer
            if producer is None:
                return
            headers = replace(progress, partitions=self._partitions).headers(self._places.stable_id)
            for partition in range(self._partitions):
                topic = self._places.tentative
                producer.send(topic, None, None, headers=headers, partition=partition)
            producer.flush(DELIVERY_S)

    def end(self, generation: Generation) -> None:
        """A fork has ended: it has no more results.

        One that has published nothing leaves no trace; the next one has its number.
        """
        with self._lock:
            if generation in self._begun.unsettled:
                self._begun.end(generation)

    def settle(self, promised_ms: Millis) -> None:
        """Settle all results up to a promise of the stable lane, which is committed.

        While a transaction in the stable topic is open it does nothing: the results that belong to
        the promise may not be visible yet. Then this promise is settled by a later call, before a
        newer one: of a lane that writes all the time, one is always open.

        Raises:
            MedusaError: Kafka does not answer; call it again. If undos or done marks were not
            delivered, it is closed, and has to be resumed: the topic has what is settled.
        """
        topic = self._places.stable
        if self.is_settled:
            return
        if self._due is None:
            written = complete(self._ends(topic, Isolation.UNCOMMITTED), (topic,))[topic]
            self._due = _Due(promised_ms, written)
        due, visible = self._due, complete(self._ends(topic), (topic,))
        if any(visible[topic].get(one, Offset(0)) < end for one, end in due.written.items()):
            return
        found = self._stable_up_to(visible)
        while records := tuple(islice(found, READ_AT_ONCE)):
            self._read(records)
        with self._lock:
            try:
                self._settle(due.promised_ms)
            except MedusaError:
                self._close()
                raise
            self._due = None

    def _read(self, records: Sequence[KafkaRecord]) -> None:
        own = self._places.stable_id.encode()
        with self._lock:
            settling = self._begun
            for record in records:
                headers = dict(record.headers)
                found = headers.get(RESULT_ID)
                if found and headers.get(WRITTEN_TO) == own:
                    settling.stable(found, digest(record.value), record.timestamp_ms)

    def _settle(self, promised_ms: Millis) -> None:
        settled, counts = self._begun.settle(promised_ms), self._counts
        self._send(settled.undone)
        for one in settled.done:
            self._send(done_marks(one, settled.promised_ms, self._partitions))
        self._counts = replace(
            counts,
            confirmed=counts.confirmed + settled.confirmed,
            replaced=counts.replaced + settled.replaced,
            undone=counts.undone + len(settled.undone),
        )

    def close(self) -> None:
        """Close the connections, and forget what is not settled."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        for one in (self._producer, self._reader):
            if one is not None:
                one.close()
        self._producer = self._reader = self._settling = self._due = None

    @property
    def _begun(self) -> Settling:
        if self._settling is None:
            raise BrokenInvariantError("a tentative topic is used before what is there was read")
        return self._settling

    def made(self, generation: Generation, results: Results) -> Iterator[TentativeResult]:
        """The results of a batch of a fork, after its generation was begun."""
        for key, value, timestamp_ms, partition, result in results.identified(self._partitions):
            if result is None:
                raise BrokenInvariantError("a tentative result has no id")
            at = Millis(timestamp_ms)
            yield TentativeResult(key, value, at, partition, result, generation)

    def _send(self, records: Sequence[TentativeRecord]) -> None:
        """Send records, and wait until they are delivered.

        Raises:
            MedusaError: they are not.
        """
        producer = self._producer
        if not records or producer is None:
            return
        for record in records:
            fields = encode(record, self._places.stable_id)
            producer.send(
                self._places.tentative,
                fields.key,
                fields.value,
                headers=fields.headers,
                timestamp_ms=fields.timestamp_ms,
                partition=fields.partition,
            )
        producer.flush(DELIVERY_S)

    def _left(self) -> Iterator[TentativeRecord]:
        """The records of the tentative topic that count."""
        topic = self._places.tentative
        starts = complete(self._admin.start_offsets((topic,)), (topic,))
        ends = complete(self._ends(topic, Isolation.UNCOMMITTED), (topic,))
        with self._kafka.reader(TIMEOUT_S, isolation=Isolation.UNCOMMITTED) as reader:
            reader.assign(starts)
            for record in reader.read_to(ends):
                found = decode(record, self._places.stable_id)
                if not isinstance(found, Unread):
                    yield found

    def _stable_up_to(self, ends: Ends) -> Iterator[KafkaRecord]:
        """The stable results that were not read; after an error, they are read again.

        Retention may have removed some of them, and a new partition is read from its beginning.
        """
        reader, topic = self._reader, self._places.stable
        if reader is None:
            return
        oldest = complete(self._admin.start_offsets((topic,)), (topic,))[topic]
        at_least = {one: oldest.get(one, Offset(0)) for one in ends[topic]}
        starts = {one: max(least, self._starts.get(one, least)) for one, least in at_least.items()}
        if all(starts[one] >= end for one, end in ends[topic].items()):
            return
        reader.assign({topic: starts})  # it may have been read beyond the last ends
        yield from reader.read_to(ends)
        self._starts = {one: max(starts[one], end) for one, end in ends[topic].items()}

    def _counted(self) -> int:
        """The number of partitions of the tentative topic, also of those without a leader now."""
        topic = self._places.tentative
        found = self._admin.describe((topic,)).get(topic)
        if found is None:
            raise NoSuchTopicError(
                "the topic does not exist",
                place=f"topic {topic}",
                hint="deploy the network again: that creates it",
            )
        return found.partitions

    def _ends(self, topic: TopicName, isolation: Isolation = Isolation.COMMITTED) -> Ends:
        return self._admin.end_offsets((topic,), isolation)
