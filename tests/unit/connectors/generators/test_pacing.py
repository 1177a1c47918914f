from connectors.generators.disturbing import Sent
from connectors.generators.pacing import WAIT_MAX_S, paced
from pipeline.ids import Millis


class SteppedClock:
    """Time passes only in sleep."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now_ms(self) -> Millis:
        """A wall clock that nobody should ask."""
        raise AssertionError

    def monotonic_s(self) -> float:
        """Seconds that have passed."""
        return sum(self.slept)

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.slept.append(seconds)


def test_each_record_comes_when_its_time_has_come() -> None:
    """And waits are short, so that a stop is noticed."""
    clock = SteppedClock()
    sent = [Sent(at_ms, {}) for at_ms in (1_000, 1_050, 2_000)]
    came = [round(clock.monotonic_s(), 3) for _ in paced(sent, 1_000, clock, lambda: False)]
    assert came == [0.0, 0.05, 1.0]
    assert max(clock.slept) <= WAIT_MAX_S


def test_a_stop_ends_it_in_the_middle_of_a_wait() -> None:
    """No record comes after it."""
    clock = SteppedClock()
    sent = [Sent(0, {}), Sent(3_600_000, {})]
    came = list(paced(sent, 0, clock, lambda: clock.monotonic_s() >= 1))
    assert came == [Sent(0, {})]
    assert clock.monotonic_s() < 2
