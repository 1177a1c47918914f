"""Mean sizes of the records of topics, from samples before the positions of lanes."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from brokers.kafka_interface import KafkaCluster, OffsetGoneError, TopicAdmin
from brokers.records import Ends, KafkaRecord
from pipeline.clock import Clock, Deadline
from pipeline.ids import Offset, TopicName

OFFSETS_BACK: Final = 50
"""How many offsets before a position are sampled, of each partition."""
RECORDS_MAX: Final = 1_000
WITHIN_S: Final = 1.0
_READ_TIMEOUT_S: Final = 5.0
_POLL_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class RecordSamples:
    """Samples records.

    Args:
        kafka: the cluster.
        admin: of its topics: records that were removed are not asked for.
        clock: of the deadline.
    """

    kafka: KafkaCluster
    admin: TopicAdmin
    clock: Clock

    def sizes(self, before: Ends) -> dict[TopicName, float]:
        """Mean size in bytes of the records of each topic of which one was there.

        Args:
            before: offsets of partitions; the records just before these are sampled.

        Raises:
            NoSuchTopicError: a topic or partition does not exist.
            UnavailableError, RetryError: Kafka does not answer.
        """
        starts = self.admin.start_offsets(sorted(before))
        begins = {
            topic: {
                at: Offset(max(starts[topic].get(at, 0), end - OFFSETS_BACK))
                for at, end in ends.items()
                if end
            }
            for topic, ends in sorted(before.items())
            if topic in starts
        }
        if not any(begins.values()):
            return {}
        found: defaultdict[TopicName, list[int]] = defaultdict(list)
        deadline = Deadline.after(self.clock, WITHIN_S, "sampling records")
        with self.kafka.reader(_READ_TIMEOUT_S) as reader:
            reader.assign({topic: there for topic, there in begins.items() if there})
            number = 0
            try:
                while not deadline.passed and number < RECORDS_MAX:
                    records = reader.poll(_POLL_S)
                    for record in records:
                        found[record.topic].append(record_bytes(record))
                    number += len(records)
                    if found and not records:
                        break
            except OffsetGoneError:  # removed since it was asked; the next sample has later ones
                pass
        return {topic: sum(sizes) / len(sizes) for topic, sizes in found.items()}


def record_bytes(record: KafkaRecord) -> int:
    """Size of the key, the value and the headers of a record."""
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers
