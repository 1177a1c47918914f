"""Dead letters as a lane writes them."""

from typing import Any

from brokers.records import KafkaRecord
from pipeline.dead_letters.letter import Letter, read
from pipeline.ids import (
    BoxName,
    FragmentId,
    FragmentName,
    Millis,
    NetworkId,
    NetworkName,
    NetworkVersion,
    Offset,
    ParticipantId,
    SourceId,
    StreamName,
    TopicId,
    TopicName,
)
from pipeline.lanes.dead_letters import Context, Headers, headers
from pipeline.names import FragmentNames

NOW = Millis(1_700_000_000_000)
NAMES = FragmentNames(
    FragmentId(NetworkId(ParticipantId("local"), NetworkName("cars")), FragmentName("moving"))
)


def record(number: int = 0, original: Headers = (), /, **more: Any) -> KafkaRecord:
    """A record of the dead-letter topic; `more` replaces fields of its context.

    `time` is the original's timestamp, `appended` that of the dead letter: equal by default.
    """
    partition = more.pop("own_partition", 0)
    facts: dict[str, Any] = {
        "reason": "undecodable",
        "message": "the bytes are no Sighting",
        "box": BoxName("moving"),
        "input": StreamName("sightings"),
        "topic_id": TopicId("id of car-sightings"),
        "source": SourceId("id of car-sightings/0"),
        "port": "",
        "topic": TopicName("car-sightings"),
        "partition": 1,
        "offset": Offset(100 + number),
        "timestamp_ms": more.pop("time", NOW),
        "version": NetworkVersion(1),
        **more,
    }
    appended = facts.pop("appended", facts["timestamp_ms"])
    return KafkaRecord(
        NAMES.dead_letters,
        partition,
        Offset(number),
        appended,
        b"key",
        b"value",
        headers(NAMES, Context(**facts), original),
    )


def letter(number: int = 0, original: Headers = (), /, **more: Any) -> Letter:
    """A dead letter, parsed from such a record."""
    return read(record(number, original, **more))
