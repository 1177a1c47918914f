"""Results that a lane with rollback recovery has written, each counted once by its id."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from brokers.memory_kafka.log import MemoryTopic
from brokers.records import KafkaRecord
from pipeline.ids import Offset
from pipeline.lanes.result_headers import RESULT_ID
from pipeline.markers.commit_marker import CommitMarker
from tests.histories.gaps import gap_of
from tests.histories.kafka import log


@dataclass
class Again:
    """The results of one fragment.

    Args:
        cut_by: the version of the fragment that has cut a batch, by the id of the cut.
        since: the ends of the output at that time: another fragment may have written it before.
        written: the results of a batch when its marker was committed, by cut and id.
    """

    cut_by: dict[str, int] = field(default_factory=dict)
    since: dict[str, tuple[MemoryTopic, dict[int, Offset]]] = field(default_factory=dict)
    written: dict[str, dict[bytes, KafkaRecord]] = field(default_factory=dict)

    def begin(self, cut: str, version: int, topic: MemoryTopic) -> None:
        """A batch was cut."""
        if cut not in self.cut_by:
            self.cut_by[cut] = version
            ends = {part: log(topic, part).end() for part in range(len(topic.partitions))}
            self.since[cut] = topic, ends

    def once(self, cut: str) -> list[KafkaRecord]:
        """The results of a batch in its topic; equal ids have to be equal results."""
        found = self.written.setdefault(cut, {})
        for result, record in self._of(cut):
            assert _content(found.setdefault(result, record)) == _content(record)
        return list(found.values())

    @property
    def known(self) -> frozenset[bytes]:
        """The ids of the results of all committed batches."""
        return frozenset(result for batch in self.written.values() for result in batch)

    def foreign(self, known: frozenset[bytes]) -> Iterator[str]:
        """Results of committed batches that these did not have.

        `known`: those of all fragments; another one may have written the topic later.
        """
        for cut in self.written:
            for result, record in self._of(cut):
                if result not in known:
                    yield f"{result!r} at {record.offset} came after the marker of its batch"

    def _of(self, cut: str) -> Iterator[tuple[bytes, KafkaRecord]]:
        topic, since = self.since[cut]
        for partition in range(len(topic.partitions)):
            there = log(topic, partition)
            for record in there.read(since.get(partition, 0), there.end()):
                result = dict(record.headers).get(RESULT_ID) or b""
                if result.startswith(f"{cut}/".encode()):
                    yield result, record


def dropped(before: CommitMarker | None, marker: CommitMarker) -> bool:
    """Whether a marker has dropped the cut of the one before without a batch, nor a reason."""
    if before is None or before.cut is None:
        return False
    same = marker.incarnation == before.incarnation
    if same and marker.batch == before.batch + 1:
        return False
    sources = [[source.id for source in one.sources] for one in (before, marker)]
    reason = marker.chosen or sources[0] != sources[1] or marker.output != before.output
    reason = reason or gap_of(marker) is not None  # what is not written of it is in the gap
    return not reason and (marker.cut is None or marker.cut.id != before.cut.id)


def _content(record: KafkaRecord) -> tuple[object, ...]:
    return (record.key, record.value, record.timestamp_ms, record.partition, record.headers)
