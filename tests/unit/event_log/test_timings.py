"""The newest takeover and start of each fragment, by the event log."""

from dataclasses import replace

from pipeline.event_log.event import EventKind, LoggedEvent
from pipeline.event_log.timings import Timing, Timings, newest_timings
from pipeline.ids import Millis

PARTS = (("noticed", 100), ("claimed", 20), ("fenced", 30), ("first_batch", 600))
TAKEN = LoggedEvent(
    Millis(1), EventKind.TAKEN_OVER, "node n2", "cars", "moving", "n2", "node n1 is down",
    parts_ms=(*PARTS, ("first_result", 9_000)),
)  # fmt: skip
STARTED = replace(
    TAKEN,
    kind=EventKind.STARTED,
    why="its state was rebuilt from the log",
    parts_ms=(("since_last_batch", 60_000), ("state", 11_000), ("start", 12_000)),
)


def test_the_newest_of_each_fragment_counts() -> None:
    """Other kinds of entries, and other fragments, change nothing."""
    later = replace(TAKEN, at_ms=Millis(5), node="n3", parts_ms=(("claimed", 7),))
    other = replace(TAKEN, fragment="stopped", node="n9")
    paused = replace(TAKEN, kind=EventKind.PAUSED, at_ms=Millis(6))
    found = newest_timings((TAKEN, STARTED, later, other, paused))
    assert found.keys() == {("cars", "moving"), ("cars", "stopped")}
    moving = found["cars", "moving"]
    assert moving.takeover == Timing(Millis(5), "n3", TAKEN.why, (("claimed", 7),))
    assert moving.start is not None
    assert found["cars", "stopped"].start is None
    assert newest_timings(()) == {}


def test_the_total_is_the_time_to_the_first_batch() -> None:
    """Without the wait for the first result, and no part counts twice."""
    found = newest_timings((TAKEN, STARTED))["cars", "moving"]
    assert found.takeover is not None
    assert found.takeover.total_ms == 750
    assert found.start is not None
    assert found.start.total_ms == 12_000
    assert Timings() == Timings(None, None)
