"""Records of telephone calls: friends, call centres, crowds in one cell.

The same seed and the same times give the same calls.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

SUBSCRIBERS, CENTRES, CELLS = 2_000, 5, 60
CENTRE_SHARE = 0.08
"""So many of the calls come from a call centre, which calls one number after the other."""
FRIENDS = 12
"""Others mostly call the same few numbers."""
SECONDS, SECONDS_SPREAD, SECONDS_MAX = 45.0, 1.1, 7_200
"""Median and spread of the logarithm of the duration of a call that is answered."""
OUTCOMES = {"answered": 70, "missed": 20, "busy": 7, "dropped": 3}
DELAY_MAX_MS = 1_000
"""A call is reported at most this long after its end."""
CROWD_EVERY_MS, CROWD_MS, CROWD_SHARE = 45_000, 10_000, 0.4
"""Now and then many calls come from the same cell, and more of them are dropped."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that has ended; times in ms since 1970 UTC. Not answered, it took 0 seconds."""

    call: str
    caller: str
    callee: str
    cell: str
    outcome: str
    seconds: int
    began_at: int
    ended_at: int


class Exchange:
    """Subscribers that call each other.

    Args:
        seed: of everything that is left to chance.
        start_ms: the time from which on calls are reported.
    """

    def __init__(self, seed: int, start_ms: int) -> None:
        self._random = random.Random(seed)
        self._numbers = [f"+49{1_500_000_000 + 7_919 * n}" for n in range(SUBSCRIBERS)]
        self._homes = [self._random.randrange(CELLS) for _ in range(SUBSCRIBERS)]
        self._calls = 0
        self._prefix = f"{start_ms:x}"
        self._crowd_at_ms = start_ms + CROWD_EVERY_MS // 9
        self._crowd_until_ms, self._crowd_cell = start_ms, 0

    def calls(self, at_ms: int, count: int) -> Iterator[Call]:
        """The next `count` calls that are reported at `at_ms`, which must never go back."""
        if at_ms >= self._crowd_at_ms:
            self._crowd_at_ms = at_ms + CROWD_EVERY_MS
            self._crowd_until_ms = at_ms + CROWD_MS
            self._crowd_cell = self._random.randrange(CELLS)
        for _ in range(count):
            yield self._call(at_ms)

    def _call(self, at_ms: int) -> Call:
        chance = self._random
        self._calls += 1
        caller, callee = self._pair()
        crowded = at_ms < self._crowd_until_ms and chance.random() < CROWD_SHARE
        cell = self._crowd_cell if crowded else self._homes[caller]
        outcome = chance.choices(tuple(OUTCOMES), tuple(OUTCOMES.values()))[0]
        if crowded and outcome == "answered" and chance.random() < CROWD_SHARE:
            outcome = "dropped"
        talked = outcome in ("answered", "dropped")
        spread = chance.lognormvariate(0, SECONDS_SPREAD)
        seconds = min(SECONDS_MAX, int(SECONDS * spread) + 1) if talked else 0
        ended_ms = at_ms - chance.randint(0, DELAY_MAX_MS)
        ringing_ms = chance.randint(1_000, 20_000)
        return Call(
            call=f"C{self._prefix}-{self._calls:08d}",
            caller=self._numbers[caller],
            callee=self._numbers[callee],
            cell=f"cell-{cell + 1:02d}",
            outcome=outcome,
            seconds=seconds,
            began_at=ended_ms - seconds * 1_000 - ringing_ms,
            ended_at=ended_ms,
        )

    def _pair(self) -> tuple[int, int]:
        """Caller and callee, by their places in the list of numbers."""
        chance = self._random
        if chance.random() < CENTRE_SHARE:
            caller = chance.randrange(CENTRES)
            return caller, CENTRES + self._calls * 31 % (SUBSCRIBERS - CENTRES)
        caller = chance.randrange(CENTRES, SUBSCRIBERS)
        friend = 1 + chance.randrange(FRIENDS)
        return caller, (caller + friend * friend * 13) % SUBSCRIBERS
