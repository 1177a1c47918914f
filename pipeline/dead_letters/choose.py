"""Filter of dead letters, and their counts by reason. Pure."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from pipeline.dead_letters.letter import Identity, Letter
from pipeline.ids import Millis


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Filter of dead letters; None: any. `from_ms` ≤ append time < `to_ms`."""

    reason: str | None = None
    box: str | None = None
    from_ms: Millis | None = None
    to_ms: Millis | None = None

    def matches(self, letter: Letter) -> bool:
        """Whether a dead letter matches all conditions."""
        time_ms = letter.appended_ms
        return (
            self.reason in {None, letter.reason}
            and self.box in {None, letter.box}
            and (self.from_ms is None or time_ms >= self.from_ms)
            and (self.to_ms is None or time_ms < self.to_ms)
        )


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of a dead-letter topic, with the oldest and newest append times; None: it is empty."""

    count: int
    redriven: int
    reasons: Mapping[str, int]
    oldest_ms: Millis | None
    newest_ms: Millis | None


def summary(letters: Iterable[Letter], sent: Container[Identity]) -> Summary:
    """Count dead letters; `sent`: those that were redriven."""
    reasons: Counter[str] = Counter()
    redriven = 0
    oldest: Millis | None = None
    newest: Millis | None = None
    for letter in letters:
        reasons[letter.reason] += 1
        redriven += letter.identity in sent
        time_ms = letter.appended_ms
        oldest = time_ms if oldest is None else min(oldest, time_ms)
        newest = time_ms if newest is None else max(newest, time_ms)
    by_count = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return Summary(reasons.total(), redriven, dict(by_count), oldest, newest)
