"""Schedule of a lane's status reports."""

from dataclasses import replace

from pipeline.agent.effects import PublishStatus
from pipeline.agent.events import Event
from pipeline.agent.now import Now
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import Lane, Reported, Shared
from pipeline.agent.status import status
from pipeline.catalog.fragment_status import FragmentStatus
from pipeline.ids import Millis

STATUS_LEAST_MS = 1_000
"""Least interval between two reports of a fragment; limits the writes to the catalog."""
STATUS_MOST_MS = 2_000
"""An unchanged report is repeated after this time, so that an old one means a silent node."""


def report(lane: Lane, shared: Shared, _: Event, now: Now) -> tuple[Lane, Effects]:
    """Report if something changed or the last report is old, within the rate limit.

    While the catalog is in doubt nothing is reported.
    """
    if not shared.catalog_current or _is_anothers(lane, shared):
        return lane, ()
    last = lane.reported
    age_ms = STATUS_MOST_MS if last is None else now.steady_ms - last.at_ms
    if age_ms < STATUS_LEAST_MS:
        return lane, ()
    seen = status(lane, shared, now)
    if last is not None and age_ms < STATUS_MOST_MS and _is_same(seen, last.status):
        return lane, ()
    lane = replace(lane, reported=Reported(seen, now.steady_ms))
    return lane, (PublishStatus(lane.id, seen, counted=lane.marker is not None),)


def _is_anothers(lane: Lane, shared: Shared) -> bool:
    """Whether the catalog would reject a report, because another node owned the fragment last."""
    if lane.assigned is None:
        return True
    owner = lane.assigned.owner
    return owner is not None and owner.node != shared.node and owner.epoch > lane.epoch


def _is_same(seen: FragmentStatus, last: FragmentStatus) -> bool:
    return _without_moments(seen) == _without_moments(last)


def _without_moments(status: FragmentStatus) -> FragmentStatus:
    """The report without moments: they are computed from the present wall time, which is set."""
    return replace(
        status,
        reported_at_ms=Millis(0),
        rebuild_since_ms=_some(status.rebuild_since_ms),
        held_since_ms=_some(status.held_since_ms),
        held_silent_since_ms=_some(status.held_silent_since_ms),
        stalled_since_ms=_some(status.stalled_since_ms),
        late_since_ms=_some(status.late_since_ms),
        settles_at_ms=_some(status.settles_at_ms),
        tentative_since_ms=_some(status.tentative_since_ms),
        tentative_held_since_ms=_some(status.tentative_held_since_ms),
    )


def _some(moment_ms: Millis | None) -> Millis | None:
    return None if moment_ms is None else Millis(0)
