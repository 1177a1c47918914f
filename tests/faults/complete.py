"""What a fragment has not done of all that its inputs contain. Pure."""

from collections.abc import Iterator

from brokers.records import Ends
from pipeline.markers.commit_marker import CommitMarker
from pipeline.planner.plan import Fragment


def lacking_of(
    fragment: Fragment, marker: CommitMarker | None, ends: Ends, until_ms: int
) -> Iterator[str]:
    """What a fragment has not done of all that its inputs contain; a line each."""
    if marker is None:
        yield f"  {fragment.name}: no marker"
        return
    if marker.boundary_ms is None or marker.boundary_ms < until_ms:
        yield f"  {fragment.name}: event time {marker.boundary_ms}, wanted {until_ms}"
    topics = {source.topic for source in fragment.inputs}
    for at, offset in sorted(marker.end.items()):
        end = ends.get(at.topic, {}).get(at.partition, 0)
        if at.topic in topics and offset < end:
            yield f"  {fragment.name}: {at.topic}/{at.partition} read up to {offset} of {end}"
