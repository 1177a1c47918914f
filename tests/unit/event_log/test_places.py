"""History of the nodes of a fragment."""

from dataclasses import replace

from pipeline.event_log.event import LoggedEvent
from pipeline.event_log.places import Stay, stays
from pipeline.ids import Millis


def claimed(at_ms: int, node: str, epoch: int, why: str) -> LoggedEvent:
    """A claim of the fragment."""
    facts = (("epoch", str(epoch)),)
    return LoggedEvent(Millis(at_ms), "claimed", node, "net", "one", node, why, facts)


def started(at_ms: int, node: str, epoch: int, gap_ms: int) -> LoggedEvent:
    """A start of it."""
    parts, facts = (("since_last_batch", gap_ms),), (("epoch", str(epoch)),)
    return LoggedEvent(Millis(at_ms), "started", node, "net", "one", node, "", facts, parts)


def test_each_claim_is_a_stay() -> None:
    """The gap is that of its first start; other fragments and epochs do not count."""
    other = LoggedEvent(Millis(3), "claimed", "c", "net", "two", "c", "why", (("epoch", "9"),))
    events = (
        claimed(1, "a", 1, "it had no owner"),
        started(2, "a", 1, 0),
        started(3, "a", 2, 700),  # after a crash, in a claim that is not logged
        other,
        claimed(4, "b", 3, "moved from node a"),
        started(5, "a", 2, 900),
        started(6, "b", 3, 800),
    )
    assert stays(events, "net", "one") == (
        Stay("a", "1", Millis(1), "it had no owner", 0),
        Stay("b", "3", Millis(4), "moved from node a", 800),
    )
    assert stays(events, "net", "three") == ()


def test_a_release_is_the_reason_of_the_next_claim() -> None:
    """Unless it was a move; the gap is of the first start that succeeds, by whatever claim."""
    released = LoggedEvent(Millis(2), "released", "a", "net", "one", "a", "", (("epoch", "1"),))
    events = (
        claimed(1, "a", 1, "it had no owner"),
        released,
        claimed(3, "b", 2, "it had no owner"),
        started(4, "a", 9, 1),
        started(5, "b", 3, 900),
        started(6, "b", 4, 100),
    )
    assert stays(events, "net", "one") == (
        Stay("a", "1", Millis(1), "it had no owner"),
        Stay("b", "2", Millis(3), "released by node a", 900),
    )


def test_a_destroyed_fragment_is_another_one() -> None:
    """Also what it was released for; epochs go on."""
    released = LoggedEvent(Millis(2), "released", "a", "net", "one", "a", "", (("epoch", "1"),))
    gone = LoggedEvent(Millis(3), "destroyed", "u@h", "net")
    before = (claimed(1, "a", 1, "it had no owner"), released)
    after = (claimed(4, "b", 2, "it had no owner"), started(5, "b", 2, 0))
    found = (Stay("b", "2", Millis(4), "it had no owner", 0),)
    assert stays((*before, gone, *after), "net", "one") == found
    elsewhere = (*before, replace(gone, network="other"), *after)
    assert [one.node for one in stays(elsewhere, "net", "one")] == ["a", "b"]
