"""What passes in a round, and bounds of a connector's speed. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Passed:
    """What a round has moved; `more`: whether there is more now."""

    records: int = 0
    refused: int = 0
    size_bytes: int = 0
    more: bool = False


@dataclass(frozen=True, slots=True)
class Rates:
    """The most that may pass in a second; None: no bound."""

    records: float | None = None
    size_bytes: float | None = None

    def pause_s(self, records: int, size_bytes: int, took_s: float) -> float:
        """How long to wait after something has passed, so that neither bound is exceeded.

        >>> Rates(records=100).pause_s(50, 0, 0.2)
        0.3
        """
        least = [0.0]
        if self.records is not None:
            least.append(records / self.records)
        if self.size_bytes is not None:
            least.append(size_bytes / self.size_bytes)
        return max(0.0, max(least) - took_s)
