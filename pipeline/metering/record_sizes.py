"""Bytes that a batch has read, from positions and mean sizes of records. Pure."""

from collections import defaultdict
from collections.abc import Mapping

from pipeline.ids import TopicName
from pipeline.markers.positions import Positions


def bytes_read(
    records: int, begin: Positions, end: Positions, sizes: Mapping[TopicName, float]
) -> tuple[int, Mapping[TopicName, float]]:
    """Bytes of the records between two positions.

    Offsets may contain no record, as at the end of a transaction, so the records are divided among
    the topics in proportion to their offsets.

    Args:
        records: number of records in all topics.
        begin: the next offset to read before; partitions without one are not counted.
        end: the next offset to read after.
        sizes: mean size of a record of each topic, in bytes.

    Returns:
        The bytes; and the records of topics without a size, which are not counted in them.
    """
    offsets: defaultdict[TopicName, int] = defaultdict(int)
    for at, offset in end.items():
        offsets[at.topic] += max(0, offset - begin.get(at, offset))
    total = sum(offsets.values())
    if total <= 0 or records <= 0:
        return 0, {}
    of_topic = {topic: records * number / total for topic, number in offsets.items() if number}
    known = sum(number * sizes[topic] for topic, number in of_topic.items() if topic in sizes)
    return round(known), {topic: n for topic, n in of_topic.items() if topic not in sizes}
