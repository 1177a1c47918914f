"""Sample of a topic: its newest records, decoded, limited in number and time."""

from typing import Final

from brokers.records import KafkaRecord
from pipeline.clock import Clock
from pipeline.errors import RetryError
from pipeline.ids import Offset, TopicName
from pipeline.network.types import Columns
from pipeline.operations.connections import Connections
from pipeline.operations.proposals.measurements import SampledRecord
from pipeline.operations.records.decoding import decode_record
from pipeline.operations.records.selection import column_values
from schemas.avro import AvroSchema

RECORDS_MAX: Final = 10_000
"""Largest sample, of all partitions together."""
WITHIN_S: Final = 10.0


def sample(
    topic: TopicName,
    schema: AvroSchema,
    columns: Columns,
    connections: Connections,
    clock: Clock,
) -> tuple[SampledRecord, ...]:
    """The newest records of each partition, in order; fewer if the time limit is reached."""
    starts = connections.topics.start_offsets([topic]).get(topic, {})
    ends = connections.topics.end_offsets([topic]).get(topic, {})
    share = max(1, RECORDS_MAX // max(1, len(ends)))
    first = {p: Offset(max(starts.get(p, end), end - share)) for p, end in ends.items()}
    deadline_s = clock.monotonic_s() + WITHIN_S
    records: list[KafkaRecord] = []
    reader = connections.reader()
    reader.assign({topic: first})
    try:
        for record in reader.read_to({topic: ends}):
            records.append(record)
            if clock.monotonic_s() >= deadline_s:
                break
    except RetryError:
        pass  # an open transaction, or a change of leader: the sample is what was read
    return tuple(_seen(record, schema, columns, connections) for record in records)


def _seen(
    record: KafkaRecord, schema: AvroSchema, columns: Columns, connections: Connections
) -> SampledRecord:
    key = decode_record(record, connections.registry).key
    if record.value is None:
        return SampledRecord(record.partition, record.timestamp_ms, key, None)
    row = column_values(record, schema, columns, connections.registry)
    return SampledRecord(record.partition, record.timestamp_ms, key, row.values, row.problem)
