"""Choice of the input that is reported as holding event time back."""

from dataclasses import replace

from pipeline.boundaries.external import InputTime, Slowest, StreamBoundary
from pipeline.boundaries.held import HELD_LEAST_MS, STILL_LEAST_MS, HeldBack, Since, held_back
from pipeline.ids import Millis, SteadyMillis, StreamName

A, B, C = (StreamName(name) for name in "abc")
NOW = SteadyMillis(1_000_000)
FAR = HELD_LEAST_MS


def at(boundary: int | None, *, idle: bool = False) -> InputTime:
    """An input whose boundary is this many times the reporting threshold behind."""
    return InputTime(None if boundary is None else StreamBoundary(Millis(boundary * FAR)), idle)


def split(boundary: int | None, ahead: int, silent: SteadyMillis | None = None) -> InputTime:
    """An input whose partition 3 determines the boundary, while another one is ahead of it."""
    return replace(at(boundary), slowest=Slowest(3, Millis(ahead * FAR), silent))


def reported(
    silent: dict[StreamName, SteadyMillis] | None = None,
    before: HeldBack | None = None,
    derived: tuple[StreamName, ...] = (),
    still: dict[StreamName, SteadyMillis] | None = None,
    **found: InputTime,
) -> HeldBack | None:
    """The input reported now."""
    inputs = {StreamName(name): one for name, one in found.items()}
    return held_back(before, inputs, Since(silent or {}, still or {}), derived, NOW)


def test_the_input_furthest_behind_is_reported() -> None:
    """Relative to the furthest active one; idle inputs hold nothing back."""
    assert reported(a=at(9), b=at(5), c=at(7)) == HeldBack(B, 4 * FAR, NOW)
    assert reported(a=at(9), b=at(5, idle=True)) is None
    assert reported(a=at(9)) is None
    assert reported(a=at(9), b=at(None)) == HeldBack(B, None, NOW)
    assert reported(a=at(9, idle=True), b=at(None)) == HeldBack(B, None, NOW)
    assert reported(a=at(None), b=at(None)) is None
    assert reported(a=at(9), b=at(None, idle=True)) is None


def test_the_start_time_is_kept_while_the_input_is_the_same() -> None:
    """It is set again for another input."""
    before = HeldBack(B, FAR, SteadyMillis(5))
    assert reported(before=before, a=at(9), b=at(5)) == HeldBack(B, 4 * FAR, SteadyMillis(5))
    assert reported(before=before, a=at(5), b=at(9)) == HeldBack(A, 4 * FAR, NOW)


def test_a_derived_input_with_a_boundary_is_not_reported() -> None:
    """One without any boundary is."""
    assert reported(derived=(B,), a=at(9), b=at(5)) is None
    assert reported(derived=(B,), a=at(9), b=at(None)) == HeldBack(B, None, NOW)


def test_the_duration_of_silence_is_reported() -> None:
    """If the input is silent."""
    quiet = SteadyMillis(NOW - 20_000)
    assert reported({B: quiet}, a=at(9), b=at(5)) == HeldBack(B, 4 * FAR, NOW, quiet)
    assert reported({A: quiet}, a=at(9), b=at(5)) == HeldBack(B, 4 * FAR, NOW)


def test_when_all_are_silent_the_last_active_one_is_reported() -> None:
    """It becomes idle last. An active one that is not silent advances event time."""
    first, last = SteadyMillis(NOW - 30_000), SteadyMillis(NOW - 20_000)
    assert reported({A: first, B: last}, a=at(9), b=at(9)) == HeldBack(B, 0, last, last)
    assert reported({A: first}, a=at(9), b=at(5, idle=True)) == HeldBack(A, 0, first, first)
    assert reported({A: first}, a=at(9), b=at(9)) is None
    assert reported(a=at(9, idle=True)) is None


def test_a_partition_that_others_of_its_stream_are_ahead_of_is_named() -> None:
    """Also if it is the only input; with its own silence."""
    assert reported(a=split(5, 9)) == HeldBack(A, 4 * FAR, NOW, partition=3)
    assert reported(a=split(None, 9)) == HeldBack(A, None, NOW, partition=3)
    assert reported(a=split(5, 9), b=at(7)) == HeldBack(A, 4 * FAR, NOW, partition=3)
    quiet = SteadyMillis(NOW - HELD_LEAST_MS)
    assert reported(a=split(5, 9, quiet)) == HeldBack(A, 4 * FAR, NOW, quiet, partition=3)
    moment = SteadyMillis(quiet + 1)
    assert reported(a=split(5, 9, moment)) == HeldBack(A, 4 * FAR, NOW, partition=3)
    assert reported(a=split(5, 5)) is None


def test_an_input_that_is_behind_as_a_whole_has_no_partition_named() -> None:
    """Its partitions differ by less than what is reported."""
    near = replace(at(5), slowest=Slowest(3, Millis(5 * FAR + FAR - 1), None))
    assert reported(a=near, b=at(9)) == HeldBack(A, 4 * FAR, NOW)


def test_records_that_bring_no_event_time_are_reported() -> None:
    """Of the input that determines event time, after a while."""
    since = SteadyMillis(NOW - STILL_LEAST_MS)
    assert reported(still={A: since}, a=at(5)) == HeldBack(A, 0, since)
    assert reported(still={A: SteadyMillis(since + 1)}, a=at(5)) is None
    assert reported(still={A: since}, a=at(5), b=at(5, idle=True)) == HeldBack(A, 0, since)
    nearly = InputTime(StreamBoundary(Millis(5 * FAR - 1)))
    assert reported(still={A: since, B: NOW}, a=at(5), b=nearly) is None
    assert reported(a=at(5)) is None


def test_an_input_that_holds_event_time_at_the_same_place_is_named() -> None:
    """The least one is a derived input, or only a little behind."""
    assert reported(derived=(B,), a=split(5, 9), b=at(5)) == HeldBack(A, 4 * FAR, NOW, partition=3)
    little = InputTime(StreamBoundary(Millis(5 * FAR - 1)))
    assert reported(a=split(5, 9), b=little) == HeldBack(A, 4 * FAR, NOW, partition=3)
    assert reported(a=split(7, 9), b=at(5)) == HeldBack(B, 2 * FAR, NOW)


def test_the_only_input_is_reported_if_its_records_give_no_event_time() -> None:
    """All of them are refused; not before half a minute, and not if it is idle."""
    long_ago, lately = SteadyMillis(NOW - STILL_LEAST_MS), SteadyMillis(NOW - STILL_LEAST_MS + 1)

    def found(since_ms: SteadyMillis, one: InputTime) -> HeldBack | None:
        return held_back(None, {A: one}, Since(untimed={A: since_ms}), (), NOW)

    assert found(long_ago, at(None)) == HeldBack(A, None, long_ago)
    assert found(lately, at(None)) is None
    assert found(long_ago, at(None, idle=True)) is None
    assert found(long_ago, at(9)) is None
