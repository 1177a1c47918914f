"""Commit markers of a start."""

from collections.abc import Mapping
from dataclasses import replace

from pipeline.ids import BatchId, Incarnation, Millis, Offset
from pipeline.lanes.start.decision import Rebuild
from pipeline.lanes.start.facts import StartRequest
from pipeline.markers.commit_marker import NO_BATCH, CommitMarker, Totals
from pipeline.markers.cut import Cut
from pipeline.markers.positions import MarkedSource, Positions


def first_marker(
    request: StartRequest, incarnation: Incarnation, positions: Positions, written_at_ms: Millis
) -> CommitMarker:
    """The marker of a lane's first start: it contains start positions, no batch has run."""
    return CommitMarker(
        epoch=request.epoch,
        incarnation=incarnation,
        batch=NO_BATCH,
        start=positions,
        end=positions,
        needed=positions,
        late_ms=None,
        eviction_ms=None,
        progress={},
        late_settled=NO_BATCH,
        boundary_ms=None,
        totals=Totals(),
        written_at_ms=written_at_ms,
        state=request.state,
        letters=request.dead_letter_topic_id,
        sources=request.sources,
        plan=request.plan,
        decided=request.deploy,
    )


def adopted(marker: CommitMarker, request: StartRequest) -> CommitMarker:
    """A copy of the last marker under the new owner's epoch, committed before it starts.

    Later decisions of deploys are not carried out yet.
    """
    letters = marker.letters if marker.letters_from else request.dead_letter_topic_id
    return replace(marker, epoch=request.epoch, letters=letters, plan=request.plan)


def continued(marker: CommitMarker, request: StartRequest) -> CommitMarker:
    """The same for a lane that continues its checkpoint: decisions of deploys are carried out."""
    return replace(adopted(marker, request), decided=request.deploy)


def begun_anew(
    marker: CommitMarker, request: StartRequest, incarnation: Incarnation
) -> CommitMarker:
    """The marker of a new incarnation at the same positions, without state."""
    return replace(
        marker,
        epoch=request.epoch,
        incarnation=incarnation,
        batch=NO_BATCH,
        start=marker.end,
        needed=marker.end,
        late_ms=None,
        eviction_ms=None,
        late_settled=NO_BATCH,
        state=request.state,
        letters=request.dead_letter_topic_id,
        letters_from={},
        output_ends=_output_ends(marker, request),
        chosen=request.chosen,
        sources=_settled(marker, request),
        judged=None,
        plan=request.plan,
        decided=request.deploy,
        gap=None,
        cut=_kept_cut(marker, request),
    )


def rebuilt(
    start: Rebuild,
    needed: Positions,
    batch: BatchId,
    request: StartRequest,
    incarnation: Incarnation,
) -> CommitMarker:
    """The marker of a new incarnation whose state was rebuilt up to the end of a batch.

    `needed`: the oldest positions that its state needs.
    """
    marker = start.marker
    keeps_letters = marker.letters_from and not start.chosen
    return replace(
        marker,
        epoch=request.epoch,
        incarnation=incarnation,
        batch=batch,
        start=marker.end,
        needed=needed,
        late_ms=None,
        eviction_ms=start.eviction_ms,
        late_settled=batch,
        state=request.state,
        letters=marker.letters if keeps_letters else request.dead_letter_topic_id,
        output_ends=_output_ends(marker, request),
        chosen=request.chosen,
        sources=_settled(marker, request),
        judged=None,
        plan=request.plan,
        decided=request.deploy,
        gap=None if start.chosen else marker.gap,
        cut=_kept_cut(marker, request),
    )


def _kept_cut(marker: CommitMarker, request: StartRequest) -> Cut | None:
    """The cut, which a choice drops: it may change the positions, or the state."""
    return None if request.chosen else marker.cut


def _settled(marker: CommitMarker, request: StartRequest) -> tuple[MarkedSource, ...]:
    """The sources; derived ones with the time up to which another plan has settled results.

    That plan may have promised more than the writers of the present sources. Their records may then
    be late without breaking a promise of their writers.
    """
    settled_ms = marker.settled_ms
    if settled_ms is None or (request.on_change is None and request.fits(marker)):
        return marker.sources
    return tuple(
        replace(source, settled_ms=max(settled_ms, source.settled_ms or settled_ms))
        if source.name in request.derived
        else source
        for source in marker.sources
    )


def _output_ends(marker: CommitMarker, request: StartRequest) -> Mapping[int, Offset]:
    """Acknowledged ends of the output; empty after a choice, which accepts lost records."""
    return marker.output_ends if request.on_change is None else {}


def passed_over(marker: CommitMarker, earliest: Positions, latest: Positions) -> CommitMarker:
    """The marker with positions limited to the present ranges of its topics."""

    def held(positions: Positions) -> Positions:
        return {
            at: max(min(offset, latest.get(at, offset)), earliest.get(at, offset))
            for at, offset in positions.items()
        }

    return replace(
        marker, start=held(marker.start), end=held(marker.end), needed=held(marker.needed)
    )
