"""Choice of the input that is reported as holding event time back."""

from pipeline.boundaries.external import InputTime, StreamBoundary
from pipeline.boundaries.held import HELD_LEAST_MS, HeldBack, held_back
from pipeline.ids import Millis, SteadyMillis, StreamName

A, B, C = (StreamName(name) for name in "abc")
NOW = SteadyMillis(1_000_000)
FAR = HELD_LEAST_MS


def at(boundary: int | None, *, idle: bool = False) -> InputTime:
    """An input whose boundary is this many times the reporting threshold behind."""
    return InputTime(None if boundary is None else StreamBoundary(Millis(boundary * FAR)), idle)


def reported(
    silent: dict[StreamName, SteadyMillis] | None = None,
    before: HeldBack | None = None,
    derived: tuple[StreamName, ...] = (),
    **found: InputTime,
) -> HeldBack | None:
    """The input reported now."""
    inputs = {StreamName(name): one for name, one in found.items()}
    return held_back(before, inputs, silent or {}, derived, NOW)


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
