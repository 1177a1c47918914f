"""Asking brokers until they have settled."""

from collections.abc import Iterator

from brokers.kafka.rights import settled
from pipeline.clock import SystemClock
from pipeline.errors import MedusaError, RefusedError, RetryError

AGAIN, REFUSED = RetryError("try again"), RefusedError("no")


class SleptClock(SystemClock):
    """Time passes by sleeping alone."""

    def __init__(self) -> None:
        self.slept_s = 0.0

    def monotonic_s(self) -> float:
        """As long as was slept."""
        return self.slept_s

    def sleep(self, seconds: float) -> None:
        """At once."""
        self.slept_s += seconds


def asked(*answers: MedusaError | str) -> tuple[MedusaError | str, float]:
    """The answer that counts within a second, and how long it took; the last is given for ever."""

    def given() -> Iterator[MedusaError | str]:
        yield from answers
        while True:
            yield answers[-1]

    clock, told = SleptClock(), given()
    return settled(lambda: next(told), clock, 1.0), clock.slept_s


def test_an_answer_is_taken_at_once() -> None:
    """Also one that refuses."""
    assert asked("yes") == ("yes", 0.0)
    assert asked(REFUSED) == (REFUSED, 0.0)


def test_brokers_that_ask_for_it_are_asked_again() -> None:
    """They do while they start."""
    answer, slept_s = asked(AGAIN, AGAIN, "yes")
    assert answer == "yes"
    assert slept_s > 0


def test_it_ends_when_the_time_is_over() -> None:
    """With what they said last."""
    answer, slept_s = asked(AGAIN)
    assert answer is AGAIN
    assert 1.0 <= slept_s < 1.5
