"""Upstream generation: the tentative topic of an input, as the forks of its readers use it.

A fork reads one generation of an input's tentative results, from a cut on. Within a partition the
results of a generation come in the order of event time, so a cut is a position in each. Whatever
contradicts that makes the generation unusable: the next one is read.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from brokers.records import KafkaRecord
from pipeline.boundaries.deadline import Since
from pipeline.boundaries.derived import PendingBoundary
from pipeline.boundaries.profile import DerivedInput
from pipeline.boundaries.tentative_input import TentativeInput
from pipeline.ids import Epoch, Millis, Offset, SteadyMillis, TopicName
from pipeline.tentative.by_time import MOST_OPEN
from pipeline.tentative.generation import Generation
from pipeline.tentative.progress import Progress, progress_of
from pipeline.tentative.records import DoneMark, TentativeResult, decode

_NONE: Final = Offset(-1)


@dataclass(slots=True)
class _Partition:
    """What was read of the present generation in one partition.

    Args:
        results: event times of results, rising, each with the position of its first one.
        marks: progress that is not in all partitions yet, with the position after it.
        has_begun: whether something of the generation was read.
    """

    results: deque[tuple[Millis, Offset]] = field(default_factory=deque)
    marks: deque[tuple[Progress, Offset]] = field(default_factory=deque)
    has_begun: bool = False


class Upstream:
    """State of one input's tentative topic. Not thread-safe.

    Args:
        source: the input.
        topic: of its tentative results.
        partitions: of that topic.
        most: how many event times of results it keeps.
    """

    def __init__(
        self, source: DerivedInput, topic: TopicName, partitions: int, most: int = MOST_OPEN
    ) -> None:
        self._source = source
        self._topic = topic
        self._count = partitions
        self._most = most
        self.generation: Generation | None = None
        self.is_usable = False
        """Whether the generation is neither done nor contradicts itself."""
        self.has_grown = False
        """Whether the topic has more partitions than are read."""
        self.awaited: tuple[Since, ...] = ()
        """What the writer holds back, and since when (steady time)."""
        self._forgotten_ms = Millis(-1)
        self._begin(None)

    def add(self, record: KafkaRecord, now_ms: SteadyMillis) -> None:
        """A record was read, in each partition in order; `now_ms`: steady time."""
        progress = progress_of(record, self._source.topic_id)
        if progress is not None:
            self._progress(progress, record, now_ms)
            return
        match decode(record, self._source.topic_id):
            case TentativeResult() as result:
                self._result(result, record.offset)
            case DoneMark(generation=generation) if generation == self.generation:
                self.is_usable, self.awaited = False, ()
            case _:
                pass

    def forget(self, covered_ms: Millis) -> None:
        """The stable boundary has passed this: no cut is before it."""
        self._forgotten_ms = max(covered_ms, self._forgotten_ms)
        for one in self._partitions.values():
            while one.results and one.results[0][0] <= self._forgotten_ms:
                one.results.popleft()

    def offer(self, cut_ms: Millis | None) -> TentativeInput | None:
        """The tentative records after a cut, if they are complete from there on; else None.

        Args:
            cut_ms: the stable boundary that the fork has read.
        """
        if cut_ms is None or cut_ms < self._forgotten_ms or not self._is_complete(cut_ms):
            return None
        begin = {
            partition: next((at for ms, at in one.results if ms > cut_ms), self._end[partition])
            for partition, one in self._partitions.items()
        }
        return TentativeInput(
            stream=self._source.stream,
            stable=self._source.topic,
            topic=self._topic,
            generation=str(self.generation),
            cut_ms=cut_ms,
            begin={at: min(offset, Offset(self._end[at] - 1)) for at, offset in begin.items()},
            complete=PendingBoundary(self._newest.complete_ms, dict(self._end)),
        )

    def renewed(self, taken: TentativeInput) -> TentativeInput | None:
        """What a fork has taken over, with the newest boundary; None: it is outdated."""
        if not self.is_usable or str(self.generation) != taken.generation:
            return None
        if not self._is_complete(taken.cut_ms):
            return taken
        complete = PendingBoundary(self._newest.complete_ms, dict(self._end))
        return TentativeInput(
            taken.stream,
            taken.stable,
            taken.topic,
            taken.generation,
            taken.cut_ms,
            taken.begin,
            complete,
        )

    def _is_complete(self, cut_ms: Millis) -> bool:
        newest = self._newest
        return self.is_usable and newest.begins_ms <= cut_ms < newest.complete_ms

    def _begin(self, generation: Generation | None) -> None:
        """Begin a generation: nothing of it was read."""
        self.generation, self.is_usable = generation, generation is not None
        self.awaited = ()
        self._partitions = {at: _Partition() for at in range(self._count)}
        self._newest = Progress(generation or Generation(Epoch(1), 1), self._count)
        self._end = dict.fromkeys(range(self._count), _NONE)

    def _of(self, generation: Generation, partition: int) -> _Partition | None:
        """The partition, if a record in it is of the present generation; a newer one begins."""
        if self.generation is None or generation > self.generation:
            self._begin(generation)
        found = self._partitions.get(partition)
        if found is not None and generation == self.generation:
            found.has_begun = True
            return found
        if found is not None and found.has_begun:  # of a process that was thought dead
            self.is_usable = False
        return None

    def _result(self, result: TentativeResult, offset: Offset) -> None:
        found = self._of(result.generation, result.partition)
        if found is None or not self.is_usable or result.timestamp_ms <= self._forgotten_ms:
            return
        last_ms = found.results[-1][0] if found.results else self._forgotten_ms
        kept = sum(len(one.results) for one in self._partitions.values())
        if result.timestamp_ms < last_ms or kept >= self._most:
            self.is_usable = False
        elif result.timestamp_ms > last_ms:
            found.results.append((result.timestamp_ms, offset))

    def _progress(self, progress: Progress, record: KafkaRecord, now_ms: SteadyMillis) -> None:
        found = self._of(progress.generation, record.partition)
        if found is None:
            return
        self.has_grown |= progress.partitions > self._count
        found.marks.append((progress, Offset(record.offset + 1)))
        if all(one.marks for one in self._partitions.values()):
            newest = {at: one.marks.popleft() for at, one in self._partitions.items()}
            self.is_usable &= all(one == progress for one, _ in newest.values())
            self._newest = progress
            self._end = {at: end for at, (_, end) in newest.items()}
        if self.is_usable:
            self.awaited = tuple(
                Since(one.event_ms, SteadyMillis(now_ms - one.held_ms)) for one in progress.held
            )
