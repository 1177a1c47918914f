"""Time as an argument: pure code takes `now`, shells take a `Clock`. Pure."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from pipeline.errors import RetryError
from pipeline.ids import Millis, SteadyMillis


class Clock(Protocol):
    """What a shell needs of time."""

    def now_ms(self) -> Millis:
        """Wall time, milliseconds since 1970 UTC."""

    def monotonic_s(self) -> float:
        """Seconds on a clock that never goes back; only differences mean anything."""

    def sleep(self, seconds: float) -> None:
        """Wait; used only between polls that have a deadline."""


def steady_ms(clock: Clock) -> SteadyMillis:
    """Steady time now."""
    return SteadyMillis(int(clock.monotonic_s() * 1_000))


@dataclass(frozen=True, slots=True)
class Deadline:
    """One limit for a whole operation, however many steps it has."""

    clock: Clock
    ends_at_s: float
    what: str

    @classmethod
    def after(cls, clock: Clock, seconds: float, what: str) -> "Deadline":
        """A deadline so many seconds from now; `what` names the operation in the error."""
        return cls(clock, clock.monotonic_s() + seconds, what)

    def remaining_s(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.ends_at_s - self.clock.monotonic_s())

    @property
    def passed(self) -> bool:
        """Whether no time is left."""
        return self.remaining_s() <= 0.0

    def check(self, hint: str = "") -> None:
        """Raise `RetryError` when the time is over."""
        if self.passed:
            raise RetryError(f"{self.what} did not finish in time", hint=hint)


def rfc3339(at_ms: int) -> str:
    """A time in UTC with milliseconds.

    >>> rfc3339(0)
    '1970-01-01T00:00:00.000Z'
    """
    moment = datetime.fromtimestamp(at_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"
