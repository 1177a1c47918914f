"""What a Kafka cluster holds of one network, read whenever somebody looks, kept when it is gone."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from brokers.kafka.admin import Isolation, KafkaAdmin
from brokers.kafka.reader import TopicReader
from brokers.records import Ends, KafkaRecord
from pipeline.ids import Offset, SchemaHandle, TopicName
from schemas import codec, wire
from schemas.avro import AvroSchema
from tests.histories.kafka import Topic, Topics
from tests.histories.node import OWNER

READ_WITHIN_S = 30.0
_NO_DATA = (".markers", ".dlq")
_UNREAD = (".boundaries", ".advances")
"""Topics without anything to judge."""
SchemaOf = Callable[[SchemaHandle], AvroSchema | None]


@dataclass
class MirroredTopic(Topic):
    """A topic whose records are kept as they came: some offsets are none of theirs."""

    ends: dict[int, int] = field(default_factory=dict)

    def end(self, partition: int) -> Offset:
        """Where committed records end."""
        return Offset(self.ends.get(partition, 0))

    def read(self, partition: int, start: int, end: int) -> list[KafkaRecord]:
        """The records of a range."""
        found = self.partitions[partition] if partition < len(self.partitions) else []
        return [record for record in found if start <= record.offset < end]


class Mirror(Topics):
    """The topics of one network. Values of records are told in JSON, as the reference reads them.

    Args:
        admin: of the cluster.
        bootstrap: its brokers.
        schema_of: looks a schema up.
        network: whose topics; their names begin with it, or with its owner and it.
    """

    def __init__(
        self, admin: KafkaAdmin, bootstrap: str, schema_of: SchemaOf, network: str
    ) -> None:
        super().__init__()
        self._admin, self._bootstrap, self._schema_of = admin, bootstrap, schema_of
        self._mine = (f"{network}-", f"{OWNER}.{network}.")

    def look(self) -> None:
        """Read what has come since the last time."""
        names = [name for name in self._admin.topic_names() if name.startswith(self._mine)]
        described = self._admin.describe(name for name in names if not name.endswith(_UNREAD))
        for name in self.topics.keys() - described.keys():
            del self.topics[name]
        for name, one in described.items():
            known = self.topics.get(name)
            if known is None or known.topic_id != one.topic_id:
                known = MirroredTopic(one.topic_id, {}, [])
                self.topics[name] = self.by_id[one.topic_id] = known
            known.partitions += [[] for _ in range(one.partitions - len(known.partitions))]
        self._read(tuple(described))

    def _read(self, names: Iterable[TopicName]) -> None:
        ends = self._admin.end_offsets(names, Isolation.COMMITTED)
        starts: dict[TopicName, dict[int, Offset]] = {}
        for name, offsets in ends.items():
            known = self._of(name)
            for partition, end in offsets.items():
                if (since := known.end(partition)) < end:
                    starts.setdefault(name, {})[partition] = since
        if not starts:
            return
        with TopicReader(self._bootstrap, READ_WITHIN_S) as reader:
            reader.assign(starts)
            read = [self._told(record) for record in reader.read_to(_only(ends, starts))]
        for record in read:
            self._of(record.topic).partitions[record.partition].append(record)
        for name, offsets in starts.items():
            self._of(name).ends |= {p: int(ends[name][p]) for p in offsets}

    def _of(self, name: TopicName) -> MirroredTopic:
        found = self.topics[name]
        assert isinstance(found, MirroredTopic)
        return found

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


def _plain(value: Any) -> Any:
    """Instants in milliseconds."""
    return round(value.timestamp() * 1_000) if isinstance(value, datetime) else value


def _only(ends: Ends, starts: Ends) -> Ends:
    """The ends of the partitions that are read."""
    return {name: {p: ends[name][p] for p in offsets} for name, offsets in starts.items()}
