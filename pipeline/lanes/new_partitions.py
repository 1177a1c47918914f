"""New partitions of topics that a lane already reads. Pure."""

from dataclasses import replace

from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import Positions


def reassigned(marker: CommitMarker, starts: Positions) -> CommitMarker:
    """The marker with exactly the partitions in `starts`, which contains the begin of new ones."""
    if marker.end.keys() == starts.keys():
        return marker
    start, end, needed = (
        {at: positions.get(at, offset) for at, offset in starts.items()}
        for positions in (marker.start, marker.end, marker.needed)
    )
    cut = marker.cut
    if cut is not None:  # it reads nothing of new ones
        cut = replace(cut, end={at: cut.end.get(at, offset) for at, offset in end.items()})
    return replace(marker, start=start, end=end, needed=needed, cut=cut)


def begin_of_all(begin: Positions | None, end: Positions) -> Positions | None:
    """Begin of a rebuild in each partition up to `end`; None stays None.

    The state contains no record of a partition that was added after it: the rebuild reads none of
    it, and the first batch after the rebuild begins at its `end`, which is the partition's first
    record.
    """
    return None if begin is None else {at: begin.get(at, offset) for at, offset in end.items()}


def no_beginning(known: Positions, positions: Positions) -> str | None:
    """Describe a partition that a checkpoint cannot add; None: it can add all of them.

    Spark begins a partition that is not in the checkpoint at offset 0, and nowhere else.

    Args:
        known: positions in the checkpoint's partitions.
        positions: in all present partitions.
    """
    for at, offset in sorted(positions.items()):
        if at not in known and offset > 0:
            return (
                f"topic {at.topic}, partition {at.partition} is new and begins at {offset}, not 0"
            )
    return None
