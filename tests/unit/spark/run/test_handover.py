"""The handover of a follower's query, between two threads."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from pipeline.clock import Deadline
from pipeline.ids import BatchId
from pipeline.markers.commit_marker import CommitMarker
from pipeline.spark.run.handover import FollowedQuery, Handover
from pipeline.system_clock import SystemClock
from tests.unit.boundaries.support import marker

LAST = marker({})
QUERY = cast("FollowedQuery", object())


STOP = threading.Event()


def _ask(
    handover: Handover, within_s: float = 10.0, stop: threading.Event = STOP
) -> Callable[[], FollowedQuery | None]:
    """Ask on another thread; returns what waits for the answer."""
    found: list[FollowedQuery | None] = []
    deadline = Deadline.after(SystemClock(), within_s, "asking")
    thread = threading.Thread(target=lambda: found.append(handover.ask(LAST, deadline, stop)))
    thread.start()

    def answer() -> FollowedQuery | None:
        thread.join(10.0)
        return found[0]

    return answer


def _await_due(handover: Handover, at: CommitMarker) -> None:
    deadline = Deadline.after(SystemClock(), 10.0, "asking")
    while not handover.is_due(at):
        deadline.check()


def test_a_query_is_offered_once_the_last_marker_is_reached() -> None:
    """An earlier or another marker is not enough."""
    handover = Handover()
    assert not handover.is_due(LAST)
    answer = _ask(handover)
    _await_due(handover, LAST)
    assert not handover.is_due(replace(LAST, batch=BatchId(LAST.batch + 1)))
    assert handover.offer(QUERY)
    assert answer() is QUERY


def test_a_follower_that_ends_has_no_query() -> None:
    """Before it is asked, and while the lane waits."""
    handover = Handover()
    answer = _ask(handover)
    _await_due(handover, LAST)
    handover.close()
    assert answer() is None
    assert _ask(handover)() is None


def test_a_lane_that_waits_no_more_is_offered_nothing() -> None:
    """Its time has passed, and it begins from the state; or it is to stop."""
    handover, stop = Handover(), threading.Event()
    assert _ask(handover, within_s=0.0)() is None
    stop.set()
    assert _ask(handover, stop=stop)() is None
    assert not handover.is_due(LAST)
    assert not handover.offer(QUERY)
