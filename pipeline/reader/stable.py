"""Records of the stable topic. Pure."""

import re
from dataclasses import dataclass

from brokers.records import KafkaRecord
from pipeline.ids import TopicId
from pipeline.lanes.result_headers import CORRECTION, RESULT_ID, WRITTEN_TO

_NUMBER = re.compile(rb"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class StableHeaders:
    """The headers of a result.

    Args:
        id: None: the output has no ids.
        corrects: the number of a correction; None: it is none.
    """

    id: bytes | None
    corrects: int | None


def decode(record: KafkaRecord, topic_id: TopicId) -> StableHeaders | None:
    """Decode the headers of a result; None: Medusa did not write the record to this topic."""
    headers = dict(record.headers)
    if headers.get(WRITTEN_TO) != topic_id.encode():
        return None
    number = headers.get(CORRECTION) or b""
    corrects = int(number) if _NUMBER.fullmatch(number) else None
    return StableHeaders(headers.get(RESULT_ID) or None, corrects)
