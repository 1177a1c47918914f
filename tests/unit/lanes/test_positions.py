from pipeline.ids import Offset, StreamName, TopicName
from pipeline.lanes.positions import InputPartition, by_topic

TOPIC = TopicName("car-sightings")


def test_of_two_streams_in_one_topic_the_one_further_behind_counts() -> None:
    """Who begins there misses nothing."""
    positions = {
        InputPartition(StreamName("a"), TOPIC, 0): Offset(9),
        InputPartition(StreamName("b"), TOPIC, 0): Offset(4),
        InputPartition(StreamName("b"), TopicName("other"), 0): Offset(1),
    }
    assert by_topic(positions, {TOPIC}) == {TOPIC: {0: 4}}
