"""Records of tentative topics for tests."""

from brokers.records import KafkaRecord
from pipeline.ids import Epoch, Millis, Offset, TopicId, TopicName
from pipeline.tentative.generation import Generation
from pipeline.tentative.records import DoneMark, TentativeRecord, TentativeResult, Undo, encode

TOPIC_ID = TopicId("abc")


def generation(text: str) -> Generation:
    """A generation by its text."""
    epoch, number = text.split(".")
    return Generation(Epoch(int(epoch)), int(number))


def result(
    name: str, time: int, value: str = "v", *, of: str = "1.1", partition: int = 0
) -> TentativeResult:
    """A tentative result."""
    key, at = name.encode(), Millis(time)
    return TentativeResult(key, value.encode(), at, partition, key, generation(of))


def undo(name: str, time: int, *, of: str = "1.1", partition: int = 0) -> Undo:
    """An undo of a result."""
    return Undo(name.encode(), Millis(time), partition, name.encode(), generation(of))


def mark(promised: int, *, of: str = "1.1", partition: int = 0) -> DoneMark:
    """A done mark."""
    return DoneMark(partition, generation(of), Millis(promised))


def as_read(record: TentativeRecord, offset: int = 0) -> KafkaRecord:
    """A record of a tentative topic as a consumer reads it."""
    sent = encode(record, TOPIC_ID)
    at_ms = Millis(9) if sent.timestamp_ms is None else sent.timestamp_ms
    topic = TopicName("speeds.tentative")
    return KafkaRecord(
        topic, sent.partition, Offset(offset), at_ms, sent.key, sent.value, sent.headers
    )
