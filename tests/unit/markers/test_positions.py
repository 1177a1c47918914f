from pipeline.ids import Offset, SourceId, StreamName, TopicId, TopicName
from pipeline.markers.positions import InputPartition, MarkedSource, by_topic

TOPIC = TopicName("car-sightings")


def test_of_two_streams_in_one_topic_the_lower_position_counts() -> None:
    """A reader that begins there misses no record."""
    positions = {
        InputPartition(StreamName("a"), TOPIC, 0): Offset(9),
        InputPartition(StreamName("b"), TOPIC, 0): Offset(4),
        InputPartition(StreamName("b"), TopicName("other"), 0): Offset(1),
    }
    assert by_topic(positions, {TOPIC}) == {TOPIC: {0: 4}}


def test_topics_that_carry_records_are_identified_by_their_names() -> None:
    """A stream's own topic may have any name."""
    data = ("cars.redrive", "cars.markers")
    for own, redrive in (
        ((), None),
        (("net.f.redrive",), "net.f.redrive"),
        (("net.f.redrive", "net.f.advances"), "net.f.redrive"),  # of an earlier Medusa
    ):
        for stream in data:
            topics = tuple((TopicName(one), TopicId(f"#{one}")) for one in (stream, *own))
            source = MarkedSource(SourceId("s/0"), StreamName("s"), "", "", topics)
            assert source.redrive == (None if redrive is None else (redrive, f"#{redrive}"))
            assert source.records == {stream} | ({redrive} if redrive else set())
