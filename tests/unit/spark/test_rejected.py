from dataclasses import replace

import pytest

from pipeline.ids import (
    FragmentName,
    Millis,
    NetworkName,
    NetworkVersion,
    Offset,
    ParticipantId,
    StreamName,
    TopicName,
)
from pipeline.names import FragmentNames
from pipeline.spark.hidden import Reason
from pipeline.spark.reasons import Why
from pipeline.spark.rejected import Rejected

NAMES = FragmentNames(ParticipantId("local"), NetworkName("net"), FragmentName("moving"))
RECORD = Rejected(
    input=StreamName("sightings"),
    port="",
    why=Why(Reason.UNDECODABLE, "told"),
    topic=TopicName("car-sightings"),
    partition=0,
    offset=Offset(5),
    timestamp_ms=Millis(1),
    key=b"k",
    value=b"broken",
    headers=(("medusa.error.attempt", b"4"),),
)


@pytest.mark.parametrize(("topic", "attempt"), [("car-sightings", 1), ("net.moving.redrive", 5)])
def test_only_a_record_of_the_redrive_topic_was_tried_before(topic: str, attempt: int) -> None:
    """Such a header of an input's record is somebody else's."""
    record = replace(RECORD, topic=TopicName(topic))
    assert record.context(NAMES, NetworkVersion(1)).attempt == attempt
