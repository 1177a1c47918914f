"""Partitions that a topic got after a lane had read it. Pure."""

from dataclasses import replace

from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import Positions


def reassigned(marker: CommitMarker, starts: Positions) -> CommitMarker:
    """The marker for exactly the partitions in `starts`, which is where new ones begin."""
    if marker.end.keys() == starts.keys():
        return marker
    start, end, needed = (
        {at: positions.get(at, offset) for at, offset in starts.items()}
        for positions in (marker.start, marker.end, marker.needed)
    )
    return replace(marker, start=start, end=end, needed=needed)


def begin_of_all(begin: Positions | None, end: Positions) -> Positions | None:
    """From where a rebuild reads each partition up to `end`; None stays None.

    A partition that came after the state was kept has no part in it: the rebuild reads none of it,
    and the first batch after it begins at its end here, which is the partition's first record.
    """
    return None if begin is None else {at: begin.get(at, offset) for at, offset in end.items()}


def no_beginning(known: Positions, positions: Positions) -> str | None:
    """Which partition a checkpoint cannot take in, in words; None: it can take in all of them.

    Of a partition that it does not know Spark takes in offset 0 at first, and nothing else.

    Args:
        known: positions in the partitions that the checkpoint knows.
        positions: in all that there are.
    """
    for at, offset in sorted(positions.items()):
        if at not in known and offset > 0:
            return (
                f"topic {at.topic}, partition {at.partition} is new and begins at {offset}, not 0"
            )
    return None
