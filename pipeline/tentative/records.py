"""Records of a tentative topic: results, undos, done marks.

Each has the headers `medusa.topic`, Kafka's id of the *stable* topic, and `medusa.generation`. A
result and an undo have `medusa.id`, which is that of the stable result; a done mark has
`medusa.done`. Key, partition and timestamp of a result and of its undo are those that the stable
result would have.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from hashlib import blake2b

from brokers.records import Headers, KafkaRecord
from pipeline.ids import Millis, TopicId
from pipeline.lanes.result_headers import DONE, GENERATION, PROGRESS, RESULT_ID, WRITTEN_TO
from pipeline.tentative.generation import Generation, read

_MILLIS = re.compile(rb"-?[0-9]{1,19}")
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class TentativeResult:
    """A result of a fork: early, perhaps incomplete; confirmed, replaced or undone later."""

    key: bytes | None
    value: bytes
    timestamp_ms: Millis
    partition: int
    id: bytes
    generation: Generation


@dataclass(frozen=True, slots=True)
class Undo:
    """A tentative result has no stable one, although the stable boundary has passed its time."""

    key: bytes | None
    timestamp_ms: Millis
    partition: int
    id: bytes
    generation: Generation


@dataclass(frozen=True, slots=True)
class DoneMark:
    """All results of a generation are settled; one is in each partition.

    Args:
        partition: the one that it is in.
        generation: the settled one.
        promised_ms: the event time that the stable boundary has passed.
    """

    partition: int
    generation: Generation
    promised_ms: Millis


TentativeRecord = TentativeResult | Undo | DoneMark


class Unread(Enum):
    """Why a record of a tentative topic is ignored."""

    FOREIGN = "it was not written by Medusa"
    OTHER_TOPIC = "it belongs to a stable topic that was deleted"
    PROGRESS = "it is for forks that read the topic: see `progress.py`"
    DAMAGED = "its headers are damaged"


@dataclass(frozen=True, slots=True)
class Fields:
    """What is sent to Kafka; without a timestamp it gets the present time."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: Millis | None
    partition: int
    headers: Headers


def encode(record: TentativeRecord, topic_id: TopicId) -> Fields:
    """Encode a record of a tentative topic.

    A promise may be in the future, which brokers reject as a timestamp: a done mark has none.

    Args:
        record: what is written.
        topic_id: Kafka's id of the stable topic.
    """
    headers: Headers = (
        (WRITTEN_TO, topic_id.encode()),
        (GENERATION, record.generation.encode()),
    )
    if isinstance(record, DoneMark):
        done = (DONE, str(record.promised_ms).encode())
        return Fields(None, None, None, record.partition, (*headers, done))
    value = record.value if isinstance(record, TentativeResult) else None
    named = (*headers, (RESULT_ID, record.id))
    return Fields(record.key, value, record.timestamp_ms, record.partition, named)


def decode(record: KafkaRecord, topic_id: TopicId) -> TentativeRecord | Unread:
    """Decode a record of a tentative topic.

    Args:
        record: as it was read.
        topic_id: Kafka's id of the present stable topic.
    """
    headers = dict(record.headers)
    if WRITTEN_TO not in headers or GENERATION not in headers:
        return Unread.FOREIGN
    if headers[WRITTEN_TO] != topic_id.encode():
        return Unread.OTHER_TOPIC
    generation = read(headers[GENERATION])
    if generation is None:
        return Unread.DAMAGED
    if PROGRESS in headers:
        return Unread.PROGRESS
    if DONE in headers:
        return _done_mark(record, generation, headers)
    return _result(record, generation, headers)


def _result(
    record: KafkaRecord, generation: Generation, headers: Mapping[str, bytes | None]
) -> TentativeResult | Undo | Unread:
    result_id = headers.get(RESULT_ID)
    if not result_id or record.timestamp_ms < 0:
        return Unread.DAMAGED
    at = (record.timestamp_ms, record.partition, result_id, generation)
    if record.value is None:
        return Undo(record.key, *at)
    return TentativeResult(record.key, record.value, *at)


def _done_mark(
    record: KafkaRecord, generation: Generation, headers: Mapping[str, bytes | None]
) -> DoneMark | Unread:
    promised = headers[DONE] or b""
    whole = record.key is None and record.value is None and RESULT_ID not in headers
    if not whole or not _MILLIS.fullmatch(promised):
        return Unread.DAMAGED
    return DoneMark(record.partition, generation, Millis(int(promised)))


def undo_of(result: TentativeResult) -> Undo:
    """The undo of a result."""
    return Undo(result.key, result.timestamp_ms, result.partition, result.id, result.generation)


def done_marks(generation: Generation, promised_ms: Millis, partitions: int) -> list[DoneMark]:
    """The done marks of a generation, one for each partition."""
    mark = DoneMark(0, generation, promised_ms)
    return [replace(mark, partition=partition) for partition in range(partitions)]


def digest(value: bytes | None) -> bytes:
    """The digest by which values are compared; a correction without a value has its own."""
    if value is None:
        return b""
    return blake2b(value, digest_size=_DIGEST_BYTES).digest()
