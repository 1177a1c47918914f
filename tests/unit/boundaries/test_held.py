"""Which input is named as the one that holds event time back."""

from pipeline.boundaries.external import InputTime, StreamBoundary
from pipeline.boundaries.held import HELD_LEAST_MS, HeldBack, held_back
from pipeline.ids import Millis, SteadyMillis, StreamName

A, B, C = (StreamName(name) for name in "abc")
NOW = SteadyMillis(1_000_000)
FAR = HELD_LEAST_MS


def at(boundary: int | None, *, idle: bool = False) -> InputTime:
    """An input whose boundary is so many times the least that is told behind."""
    return InputTime(None if boundary is None else StreamBoundary(Millis(boundary * FAR)), idle)


def held(
    silent: dict[StreamName, SteadyMillis] | None = None,
    before: HeldBack | None = None,
    derived: tuple[StreamName, ...] = (),
    **found: InputTime,
) -> HeldBack | None:
    """What is named, now."""
    inputs = {StreamName(name): one for name, one in found.items()}
    return held_back(before, inputs, silent or {}, derived, NOW)


def test_it_is_the_one_that_is_most_behind() -> None:
    """Against the furthest active one; idle ones hold nothing back."""
    assert held(a=at(9), b=at(5), c=at(7)) == HeldBack(B, 4 * FAR, NOW)
    assert held(a=at(9), b=at(5, idle=True)) is None
    assert held(a=at(9)) is None
    assert held(a=at(9), b=at(None)) == HeldBack(B, None, NOW)
    assert held(a=at(9, idle=True), b=at(None)) == HeldBack(B, None, NOW)
    assert held(a=at(None), b=at(None)) is None
    assert held(a=at(9), b=at(None, idle=True)) is None


def test_since_when_is_kept_while_it_is_the_same_one() -> None:
    """Another one begins anew."""
    before = HeldBack(B, FAR, SteadyMillis(5))
    assert held(before=before, a=at(9), b=at(5)) == HeldBack(B, 4 * FAR, SteadyMillis(5))
    assert held(before=before, a=at(5), b=at(9)) == HeldBack(A, 4 * FAR, NOW)


def test_a_derived_input_that_has_a_boundary_is_not_named() -> None:
    """One that has none is."""
    assert held(derived=(B,), a=at(9), b=at(5)) is None
    assert held(derived=(B,), a=at(9), b=at(None)) == HeldBack(B, None, NOW)


def test_how_long_it_has_been_silent_is_said() -> None:
    """If it is."""
    quiet = SteadyMillis(NOW - 20_000)
    assert held({B: quiet}, a=at(9), b=at(5)) == HeldBack(B, 4 * FAR, NOW, quiet)
    assert held({A: quiet}, a=at(9), b=at(5)) == HeldBack(B, 4 * FAR, NOW)


def test_when_all_are_silent_it_is_the_one_that_was_heard_last() -> None:
    """That one steps aside last. An active one that is not silent moves event time."""
    first, last = SteadyMillis(NOW - 30_000), SteadyMillis(NOW - 20_000)
    assert held({A: first, B: last}, a=at(9), b=at(9)) == HeldBack(B, 0, last, last)
    assert held({A: first}, a=at(9), b=at(5, idle=True)) == HeldBack(A, 0, first, first)
    assert held({A: first}, a=at(9), b=at(9)) is None
    assert held(a=at(9, idle=True)) is None
