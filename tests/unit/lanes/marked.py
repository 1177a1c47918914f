"""Sources of markers in tests, derived from their positions."""

from collections.abc import Mapping
from types import MappingProxyType

from pipeline.ids import SourceId, TopicId, TopicName
from pipeline.markers.positions import InputPartition, MarkedSource

NO_IDS: Mapping[TopicName, str] = MappingProxyType({})


def marked(
    *read: Mapping[InputPartition, int], ids: Mapping[TopicName, str] = NO_IDS
) -> tuple[MarkedSource, ...]:
    """A source for each input in which there are positions.

    Args:
        read: positions; the first topic of an input carries its stream.
        ids: of topics; of others the id is that of the name.
    """
    topics: dict[str, dict[TopicName, TopicId]] = {}
    for at in (at for positions in read for at in positions):
        topics.setdefault(at.input, {})[at.topic] = TopicId(ids.get(at.topic, f"id of {at.topic}"))
    return tuple(
        MarkedSource(
            SourceId(f"{next(iter(ids.values()))}/{number}"),
            at.input,
            "definition",
            "timing",
            tuple(ids.items()),
        )
        for number, (name, ids) in enumerate(topics.items())
        for at in (next(at for positions in read for at in positions if at.input == name),)
    )
