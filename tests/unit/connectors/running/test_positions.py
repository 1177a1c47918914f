import json

import pytest

from brokers.records import KafkaRecord
from connectors.running.positions import FORMAT, encode, key_of, newest
from connectors.source import SplitId
from pipeline.errors import BrokenInvariantError, NewerFormatError
from pipeline.ids import ConnectorName, Millis, Offset, TopicName

MINE, OTHER = ConnectorName("in"), ConnectorName("in2")


def record(connector: ConnectorName, split: str, value: bytes | None) -> KafkaRecord:
    """A record of the topic."""
    key = key_of(connector, SplitId(split))
    return KafkaRecord(TopicName("t"), 0, Offset(3), Millis(0), key, value)


def test_the_newest_position_of_each_split_counts() -> None:
    """Those of other connectors, whose names begin alike, do not; a tombstone removes one."""
    records = [
        record(MINE, "a", encode({"next": 1})),
        record(OTHER, "a", encode({"next": 9})),
        record(MINE, "b/c", encode({"next": 2})),
        record(MINE, "a", encode({"next": 3})),
        record(MINE, "d", encode({"next": 4})),
        record(MINE, "d", None),
    ]
    assert newest(records, MINE) == {"a": {"next": 3}, "b/c": {"next": 2}}


@pytest.mark.parametrize("value", [b"", b"3", b"{}", b'{"format": 1, "position": 3}', b"\xff"])
def test_a_damaged_position_is_named(value: bytes) -> None:
    """With its offset; guessing would lose records, or repeat them."""
    with pytest.raises(BrokenInvariantError, match="no position") as found:
        newest([record(MINE, "a", value)], MINE)
    assert "offset 3" in found.value.place


def test_a_newer_position_is_refused() -> None:
    """A newer Medusa wrote it."""
    value = json.dumps({"format": FORMAT + 1, "position": {}}).encode()
    with pytest.raises(NewerFormatError):
        newest([record(MINE, "a", value)], MINE)
