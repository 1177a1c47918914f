"""Records that a lane left out of its results, read from its dead letters. Pure.

A rebuild must leave out exactly these: whether a record is late is decided only once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.errors import BrokenInvariantError
from pipeline.ids import Offset, TopicId, TopicName
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.lanes.dead_letters import PREFIX, REDRIVEN_ORIGIN, check_format
from pipeline.markers.positions import InputPartition, MarkedSource, Positions


@dataclass(frozen=True, slots=True, order=True)
class LeftOut:
    """One input record that counts in no result on a path; `port` empty: on all paths."""

    at: InputPartition
    offset: Offset
    port: str


def left_out(
    headers: Sequence[tuple[str, bytes | None]], sources: Sequence[MarkedSource], place: str
) -> LeftOut | None:
    """The record of a dead letter; None if there is no single record, or if it counts.

    Args:
        headers: of the dead letter.
        sources: of the lane; records of other sources give None.
        place: of the dead letter, for the error.

    Raises:
        NewerFormatError: a newer version of Medusa wrote it.
        BrokenInvariantError: its headers are damaged.
    """
    found = {
        name.removeprefix(PREFIX): value.decode(errors="replace")
        for name, value in headers
        if name.startswith(PREFIX) and value is not None
    }
    check_format(found.get("format"), place)
    if "topic" not in found or found.get("reason") == Reason.PARTLY_LATE.value:
        return None
    try:
        source = next((one for one in sources if one.id == found["source"]), None)
        topics = {} if source is None else {topic_id: name for name, topic_id in source.topics}
        topic = topics.get(TopicId(found["topic_id"]))
        if source is None or topic is None:
            return None
        at = InputPartition(source.name, topic, int(found["partition"]))
        return LeftOut(at, Offset(int(found["offset"])), found["port"])
    except (KeyError, ValueError) as error:
        raise BrokenInvariantError(
            f"the headers of the dead letter are damaged: {error}", place=place
        ) from error


def sent_again(
    headers: Sequence[tuple[str, bytes | None]], sources: Sequence[MarkedSource], place: str
) -> LeftOut | None:
    """The original place of a redriven record, which counts only at its new place.

    Args:
        headers: of the redriven record.
        sources: of the lane.
        place: of that record, for the error.

    Returns:
        None for a record that was not redriven by Medusa, or is of another source.

    Raises:
        NewerFormatError: a newer version of Medusa sent it.
        BrokenInvariantError: its headers are damaged.
    """
    found = {name: value.decode(errors="replace") for name, value in headers if value is not None}
    check_format(found.get(f"{PREFIX}format"), place)
    if REDRIVEN_ORIGIN not in found:
        return None
    identity = found.get(f"{PREFIX}source")
    source = next((one for one in sources if one.id == identity), None)
    try:
        topic, partition, offset = found[REDRIVEN_ORIGIN].rsplit("/", 2)
        if source is None or topic != source.topics[0][0]:
            return None
        at = InputPartition(source.name, TopicName(topic), int(partition))
        return LeftOut(at, Offset(int(offset)), found.get(f"{PREFIX}port", ""))
    except ValueError as error:
        raise BrokenInvariantError(
            f"the headers of the record that was sent again are damaged: {error}", place=place
        ) from error


def within(found: LeftOut, begin: Positions, end: Positions) -> bool:
    """Whether a record lies in a range of positions."""
    at = found.at
    return at in begin and at in end and begin[at] <= found.offset < end[at]
