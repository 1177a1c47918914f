"""Positions of sources in their topic: the newest record of a key is the position of a split. Pure.

A key is the name of the connector and the id of the split, a value a JSON object with the number of
its format, which belongs to this topic alone. The topic is compacted.
"""

import json
from collections.abc import Iterable
from typing import Final

from brokers.records import KafkaRecord, NewTopicSpec
from connectors.source import Position, SplitId
from pipeline.errors import BrokenInvariantError
from pipeline.formats import check
from pipeline.ids import ConnectorName, ParticipantId
from pipeline.names import connectors_topic

FORMAT: Final = 1
_DEFAULT_REPLICATION: Final = -1
"""That of the brokers' setting `default.replication.factor`."""


def topic_spec(participant: ParticipantId) -> NewTopicSpec:
    """The topic of the positions of a participant's sources."""
    config = (("cleanup.policy", "compact"),)
    return NewTopicSpec(connectors_topic(participant), 1, _DEFAULT_REPLICATION, config)


def key_of(connector: ConnectorName, split: SplitId) -> bytes:
    """The key of a split.

    >>> key_of(ConnectorName("in"), SplitId("7-ab"))
    b'in/7-ab'
    """
    return f"{connector}/{split}".encode()


def encode(position: Position) -> bytes:
    """The value of a position."""
    return json.dumps({"format": FORMAT, "position": position}, separators=(",", ":")).encode()


def newest(records: Iterable[KafkaRecord], connector: ConnectorName) -> dict[SplitId, Position]:
    """The positions of one connector, from all records of the topic in their order.

    Raises:
        NewerFormatError: a newer version of Medusa wrote one of them.
        BrokenInvariantError: one is damaged.
    """
    found: dict[SplitId, Position] = {}
    prefix = f"{connector}/".encode()
    for record in records:
        if record.key is None or not record.key.startswith(prefix):
            continue
        split = SplitId(record.key.removeprefix(prefix).decode())
        if record.value is None:
            found.pop(split, None)
            continue
        found[split] = _decode(record.value, f"topic {record.topic}, offset {record.offset}")
    return found


def _decode(value: bytes, place: str) -> Position:
    try:
        held = json.loads(value)
        number, position = held["format"], held["position"]
    except (ValueError, TypeError, KeyError) as error:
        raise BrokenInvariantError("this is no position of a source", place=place) from error
    if isinstance(number, int):
        check(number, "position of a source", place, FORMAT)
    if number != FORMAT or not isinstance(position, dict):
        raise BrokenInvariantError("this is no position of a source", place=place)
    return position
