"""Clock of the machine."""

import time

from pipeline.ids import Millis


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> Millis:
        """Wall time, milliseconds since 1970 UTC."""
        return Millis(time.time_ns() // 1_000_000)

    def monotonic_s(self) -> float:
        """Seconds on the machine's monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""
        time.sleep(seconds)
