from dataclasses import replace

import pytest

from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.doctor.facts import Finding, ObservedNetwork, ObservedQueue, Verdict
from pipeline.doctor.fragments import STALLED_MS, of_fragments
from pipeline.errors import ExitCode
from pipeline.heartbeats.steps import Doing, StepAge
from pipeline.ids import (
    FragmentName,
    Millis,
    NetworkId,
    NetworkName,
    NodeId,
    ParticipantId,
    TopicName,
)
from pipeline.priority import Priority
from tests.unit.catalog.support import NOTHING_READ

NETWORK = NetworkId(ParticipantId("local"), NetworkName("n"))
NOW_MS = Millis(1_000_000_000)
STATUS = replace(NOTHING_READ, network=NETWORK, fragment=FragmentName("f"), reported_at_ms=NOW_MS)


def found(status: FragmentStatus, *paused: str) -> list[Finding]:
    """Findings about a network of one fragment with this status."""
    names = tuple(FragmentName(name) for name in paused)
    network = ObservedNetwork(NETWORK, True, True, writers={TopicName("out"): status}, paused=names)
    return list(of_fragments(network))


@pytest.mark.parametrize(
    ("doing", "words", "hint"),
    [
        (Doing.BATCH, "f: one batch has taken 1m 35s so far", "it would take as long there"),
        (Doing.WAIT, "f: its thread has made no step for 1m 35s", "`medusa move`"),
    ],
)
def test_a_lane_that_makes_no_step_is_reported(doing: Doing, words: str, hint: str) -> None:
    """A long batch as such."""
    steps = {FragmentName("f"): StepAge("n.f", doing, 95_000)}
    (finding,) = of_fragments(ObservedNetwork(NETWORK, True, True, overdue=steps))
    assert finding.message.startswith(words)
    assert hint in finding.hint
    assert (finding.verdict, finding.place) == (Verdict.DOUBTFUL, "fragment n.f")


@pytest.mark.parametrize("priority", list(Priority))
def test_a_queued_fragment_is_reported_with_what_to_do(priority: Priority) -> None:
    """A fragment of the highest priority displaces no other by a higher one."""
    queue = ObservedQueue(priority, ((NodeId("n1"), 3), (NodeId("n2"), 1)))
    network = ObservedNetwork(NETWORK, True, True, queued={FragmentName("f"): queue})
    (finding,) = of_fragments(network)
    words = f"f is queued, priority {priority.value}: no place is left on n1 (3), n2 (1)"
    assert finding.message == words
    assert "--most-fragments" in finding.hint
    assert ("A higher `priority`" in finding.hint) is (priority is not Priority.HIGH)
    assert (finding.verdict, finding.place) == (Verdict.DOUBTFUL, "fragment n.f")


def hinted(status: FragmentStatus) -> list[str]:
    """The messages about a fragment that runs."""
    return [one.message for one in found(status)]


@pytest.mark.parametrize(
    ("waited_ms", "behind_ms", "words"),
    [
        (59_000, 3_600_000, None),
        (3_600_000, 59_000, None),
        (90_500, 7_200_000, "has waited for orders for 1m 30s: it is 2h behind"),
        (120_000, None, "has waited for orders for 2m: it has given no event time"),
    ],
)
def test_results_that_wait_for_an_input_are_reported(
    waited_ms: int, behind_ms: int | None, words: str | None
) -> None:
    """While the lane runs; small differences between inputs are not reported."""
    status = replace(
        STATUS, held_by="orders", held_ms=behind_ms, held_since_ms=Millis(NOW_MS - waited_ms)
    )
    for state in (LaneState.RUNNING, LaneState.STOPPED):
        found = hinted(replace(status, state=state))
        if words is None or state is not LaneState.RUNNING:
            assert found == []
        else:
            assert len(found) == 1
            assert words in found[0]


def test_records_that_bring_no_event_time_are_reported() -> None:
    """Not silence of all inputs, after which event time goes on by itself."""
    held = replace(STATUS, held_by="orders", held_ms=0, held_partition=1)
    held = replace(held, held_since_ms=Millis(NOW_MS - 90_000))
    for silent_since_ms, count in ((None, 1), (Millis(NOW_MS - 90_000), 0)):
        found = hinted(replace(held, held_silent_since_ms=silent_since_ms))
        assert len(found) == count
        for message in found:
            assert "has waited for orders, partition 1 for 1m 30s: it has records" in message


def test_a_running_fragment_that_ends_no_batch_is_reported() -> None:
    """Instead of the input that event time waits for: it may only be unread."""
    status = replace(
        STATUS,
        held_by="orders",
        held_since_ms=Millis(NOW_MS - 200_000),
        stalled_since_ms=Millis(NOW_MS - 190_500),
        lag_records=4,
    )
    for state, count in ((LaneState.RUNNING, 1), (LaneState.STOPPED, 0)):
        found = hinted(replace(status, state=state))
        assert len(found) == count
        for message in found:
            assert "has ended no batch for 3m 10s, with 4 records unread" in message


@pytest.mark.parametrize(
    ("span_ms", "ahead_ms", "words"),
    [
        (59_000, 0, None),
        (61_000, 0, "59 of 60 records that f read in 1m 1s were late"),
        (61_000, 9_000, "59 of 60 records that f read in 1m 1s were late"),
        (61_000, 90_000, "were late: event time is 1m 30s beyond the clock"),
    ],
)
def test_a_fragment_whose_records_are_late_is_reported(
    span_ms: int, ahead_ms: int, words: str | None
) -> None:
    """Once it has gone on for a minute, with the cause if it is event time of the future."""
    status = replace(
        STATUS,
        late_since_ms=Millis(NOW_MS - span_ms),
        late_span_ms=span_ms,
        late_read=60,
        late_records=59,
    )
    status = replace(status, event_ms=Millis(status.reported_at_ms + ahead_ms))
    found = hinted(status)
    assert len(found) == (words is not None)
    for message in found:
        assert message.endswith(words or "")
    assert hinted(replace(status, state=LaneState.STOPPED)) == []


@pytest.mark.parametrize(
    ("state", "verdict", "code"),
    [
        (LaneState.WAITING, Verdict.DOUBTFUL, ExitCode.DONE),
        (LaneState.RESTARTING, Verdict.DOUBTFUL, ExitCode.DONE),
        (LaneState.FAILED, Verdict.WRONG, ExitCode.BAD_INPUT),
    ],
)
def test_a_fragment_that_does_not_run_is_reported_with_its_error(
    state: LaneState, verdict: Verdict, code: ExitCode
) -> None:
    """On one line; one without an error, too."""
    (one,) = found(replace(STATUS, state=state, last_error="topic a:\n is gone"))
    assert (one.verdict, one.exit_code) == (verdict, code)
    assert one.message == f"f is {state.value}: topic a: is gone"
    (one,) = found(replace(STATUS, state=state, last_error=""))
    assert one.message == f"f is {state.value}: its node reports no reason"


def test_a_paused_fragment_is_reported_once() -> None:
    """With the command that resumes it, whatever its node reports."""
    for state in (LaneState.STOPPED, LaneState.FAILED):
        (one,) = found(replace(STATUS, state=state), "f")
        assert one.message == "f is paused: its records and its readers wait"
        assert one.hint == "`medusa resume n.f`."
    assert found(replace(STATUS, state=LaneState.STOPPED)) == []


def test_only_an_input_that_may_step_aside_is_said_to() -> None:
    """One whose records are all refused does not."""
    held = replace(STATUS, held_by="orders", held_since_ms=Millis(NOW_MS - 90_000))
    silent_since_ms = Millis(NOW_MS - 90_000)
    (refused,) = found(held)
    (silent,) = found(replace(held, held_silent_since_ms=silent_since_ms))
    assert refused.hint.startswith("records that are refused")
    assert silent.hint.startswith("an input steps aside")


def test_partitions_that_cannot_be_reached_are_reported() -> None:
    """Of a fragment that reads the others."""
    (one,) = found(replace(STATUS, unreachable="topic a, partition 1, since 12:00"))
    assert one.message.endswith("cannot be reached: topic a, partition 1, since 12:00")


def test_a_planned_batch_that_does_not_end_is_reported() -> None:
    """Although nothing is unread: event time moves."""
    stalled = replace(STATUS, stalled_since_ms=Millis(NOW_MS - STALLED_MS), lag_records=0)
    (one,) = found(stalled)
    assert one.message == "f has ended no batch for 30s"
    assert found(replace(stalled, stalled_since_ms=Millis(NOW_MS - STALLED_MS + 1))) == []
