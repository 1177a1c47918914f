"""Invariants of successive commit markers of a fragment. Pure."""

from collections.abc import Iterator

from pipeline.markers.commit_marker import NO_BATCH, CommitMarker
from pipeline.markers.positions import Positions


def follows(before: CommitMarker | None, marker: CommitMarker) -> Iterator[str]:
    """Violations of a marker, given the previous one."""
    if before is None:
        return
    if marker.epoch < before.epoch:
        yield f"epoch {marker.epoch} after epoch {before.epoch}"
    yield from _not_less("boundary_ms", before.boundary_ms, marker.boundary_ms)
    if marker.incarnation != before.incarnation:
        anew = marker.anew != before.anew
        if marker.eviction_ms is not None and not anew:  # a plan without a state has none
            yield from _not_less("eviction_ms", before.eviction_ms, marker.eviction_ms)
        return
    yield from _not_less("late_ms", before.late_ms, marker.late_ms)
    yield from _not_less("eviction_ms", before.eviction_ms, marker.eviction_ms)
    late_ms = None if before.batch == NO_BATCH else before.eviction_ms
    if marker.batch == before.batch + 1 and marker.late_ms != late_ms:
        yield f"batch {marker.batch}: late by {marker.late_ms}, after watermark {late_ms}"
    if marker.batch not in (before.batch, before.batch + 1):
        yield f"batch {marker.batch} after batch {before.batch}"
    due = _by_id(before, before.start if marker.batch == before.batch else before.end)
    starts = _by_id(marker, marker.start)
    for at, offset in due.items():
        if starts.get(at, offset) != offset:
            yield f"batch {marker.batch} starts at {starts[at]}, not {offset}, in {at}"


def _by_id(marker: CommitMarker, positions: Positions) -> dict[tuple[str, str, int], int]:
    """Positions by source, topic id and partition: names are labels."""
    known = {source.name: (source.id, dict(source.topics)) for source in marker.sources}
    return {
        (known[at.input][0], known[at.input][1][at.topic], at.partition): int(offset)
        for at, offset in positions.items()
    }


def _not_less(name: str, before: int | None, now: int | None) -> Iterator[str]:
    if before is not None and (now is None or now < before):
        yield f"{name} fell from {before} to {now}"
