"""Local copy of a network's topics in Kafka, updated on request; keeps deleted records."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.reader import TopicReader
from brokers.kafka_interface import Isolation
from brokers.memory_kafka.log import MemoryPartition, MemoryTopic
from brokers.records import Ends, KafkaRecord
from pipeline.ids import Millis, Offset, SchemaHandle, TopicName
from schemas import codec, wire
from schemas.avro import AvroSchema
from tests.histories.kafka import log
from tests.histories.node import OWNER

READ_WITHIN_S = 30.0
_NO_DATA = (".markers", ".dlq")
_UNREAD = ".boundaries"
"""Topics that are not checked."""
SchemaOf = Callable[[SchemaHandle], AvroSchema | None]


class Mirror:
    """The topics of one network. Values of records are in JSON, as the reference reads them.

    Args:
        admin: of the cluster.
        bootstrap: its brokers.
        schema_of: looks a schema up.
        network: whose topics; their names begin with it, or with its owner and it.
    """

    def __init__(
        self, admin: KafkaAdmin, bootstrap: str, schema_of: SchemaOf, network: str
    ) -> None:
        self.topics: dict[TopicName, MemoryTopic] = {}
        self.by_id: dict[str, MemoryTopic] = {}
        self._admin, self._bootstrap, self._schema_of = admin, bootstrap, schema_of
        self._mine = (f"{network}-", f"{OWNER}.{network}.")

    def look(self) -> None:
        """Read new records."""
        names = [name for name in self._admin.topic_names() if name.startswith(self._mine)]
        described = self._admin.describe(name for name in names if not name.endswith(_UNREAD))
        for name in self.topics.keys() - described.keys():
            del self.topics[name]
        for name, one in described.items():
            known = self.topics.get(name)
            if known is None or known.topic_id != one.topic_id:
                known = MemoryTopic(one.topic_id, {}, [])
                self.topics[name] = self.by_id[one.topic_id] = known
            new = one.partitions - len(known.partitions)
            known.partitions += [MemoryPartition() for _ in range(new)]
        self._read(tuple(described))

    def _read(self, names: Iterable[TopicName]) -> None:
        ends = self._admin.end_offsets(names, Isolation.COMMITTED)
        starts: dict[TopicName, dict[int, Offset]] = {}
        for name, offsets in ends.items():
            known = self.topics[name]
            for partition, end in offsets.items():
                if (since := log(known, partition).end()) < end:
                    starts.setdefault(name, {})[partition] = since
        if not starts:
            return
        with TopicReader(self._bootstrap, READ_WITHIN_S) as reader:
            reader.assign(starts)
            read = [self._told(record) for record in reader.read_to(_only(ends, starts))]
        for record in read:
            there = log(self.topics[record.topic], record.partition)
            _fill(there, record.offset, record)
            there.log.append(record)
        for name, offsets in starts.items():
            for number in offsets:
                there, end = log(self.topics[name], number), ends[name][number]
                _fill(there, end, KafkaRecord(name, number, end, Millis(0), None, None))

    def _told(self, record: KafkaRecord) -> KafkaRecord:
        """A record with its value in JSON, if it is of a registered schema."""
        framed = wire.split(record.value)
        if record.topic.endswith(_NO_DATA) or not isinstance(framed, wire.Framed):
            return record
        schema = self._schema_of(framed.schema)
        if schema is None:
            return record
        row: Mapping[str, Any] = codec.decode(schema, schema, framed.body)
        plain = {name: _plain(value) for name, value in row.items()}
        return replace(record, value=wire.join(framed.schema, json.dumps(plain).encode()))


def _fill(partition: MemoryPartition, end: Offset, gap: KafkaRecord) -> None:
    """Fill offsets without readable records, up to an end."""
    for offset in range(len(partition.log), end):
        partition.controls.add(offset)
        partition.log.append(replace(gap, offset=Offset(offset)))


def _plain(value: Any) -> Any:
    """Instants in milliseconds."""
    return round(value.timestamp() * 1_000) if isinstance(value, datetime) else value


def _only(ends: Ends, starts: Ends) -> Ends:
    """The ends of the partitions that are read."""
    return {name: {p: ends[name][p] for p in offsets} for name, offsets in starts.items()}
