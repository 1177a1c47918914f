"""What a gap in a commit marker says, compared with the records that are before its end."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.gap import Gap
from pipeline.planner.plan import Fragment
from tests.histories.boxes import Seen
from tests.histories.documents import Box


@dataclass(frozen=True, slots=True)
class Range:
    """Records of one partition that were passed over."""

    stream: str
    topic_id: str
    partition: int
    begin: int
    end: int


def gap_of(marker: CommitMarker) -> Gap | None:
    """The gap after which the marker's incarnation has begun; None: there is none."""
    gap = marker.gap
    return gap if gap is not None and gap.incarnation == marker.incarnation else None


def omitted(gap: Gap, marker: CommitMarker, plan: Fragment) -> Iterator[Range]:
    """What was passed over, by the ids of topics."""
    streams = {stream.topic: stream.name for stream in plan.inputs}
    ids = {name: one for source in marker.sources for name, one in source.topics}
    for one in gap.omitted:
        stream, topic_id = streams[one.topic], ids[one.topic]
        yield Range(stream, topic_id, one.partition, int(one.begin), int(one.end))


def wrong_in(gap: Gap, box: Box | None, rows: Iterable[Seen]) -> Iterator[str]:
    """What is wrong in a gap.

    Args:
        gap: as in the marker.
        box: the box with state of a fragment that may have a gap; None: it may have none.
        rows: the rows before its end.
    """
    if box is None:
        yield "there is a gap, and it may have none"
        return
    last = max((row.at for row in rows), default=0)
    if last > gap.newest_ms:
        yield f"a record at {last} is before its end, said {gap.newest_ms}"
    reach = box.number - last % box.number if box.kind == "aggregate" else box.number
    if last + reach > gap.until_ms:
        yield f"it ends at {gap.until_ms}, and a record at {last} reaches to {last + reach}"
