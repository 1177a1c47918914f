"""Steps of lanes: what the thread of each lane does, and since when. Pure.

| a lane does | a step ends |
|---|---|
| `wait` for its next batch | once a second, when it looks at the time, and with each news |
| `batch`: execute and write one | when it asks for the next one |
| `request`: ask or tell Kafka something between two batches | the same |
| `query`: start or end one | when it waits for its first batch, or has ended |
| `rebuild` its state | at the end of that |

A step that takes longer than its limit is reported, and is no reason for a suspicion: another node
would execute the same batch as long, or hang as well. A rebuild has no limit: `status` shows how
far it is.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from pipeline import durations
from pipeline.clock import Clock, steady_ms
from schemas.json_value import Json

BYTES_MAX: Final = 16_384
"""Limit of the steps in one heartbeat; of more lanes the oldest steps are sent."""


class Doing(StrEnum):
    """What a lane does in a step."""

    WAIT = "wait"
    BATCH = "batch"
    REQUEST = "request"
    QUERY = "query"
    REBUILD = "rebuild"


LIMITS_MS: Mapping[str, int] = MappingProxyType(
    {Doing.WAIT: 10_000, Doing.REQUEST: 60_000, Doing.BATCH: 60_000, Doing.QUERY: 300_000}
)
"""How long a step may take. Waits look at the time each second; a batch takes seconds, and requests
to Kafka have time limits of a minute."""


_WORDS: Mapping[str, str] = MappingProxyType(
    {
        Doing.WAIT: "its thread has made no step for {}, though it waits for nothing: it hangs",
        Doing.REQUEST: "a request to Kafka between two batches has taken {} so far",
        Doing.BATCH: "one batch has taken {} so far",
        Doing.QUERY: "the start or the end of its query has taken {} so far",
    }
)


class LaneStep:
    """The present step of one lane. Its threads set it, others read it: it needs no lock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._now = Doing.QUERY, steady_ms(clock)

    def begin(self, doing: Doing) -> None:
        """The last step is over."""
        self._now = doing, steady_ms(self._clock)

    @contextmanager
    def during(self, doing: Doing) -> Iterator[None]:
        """A step of its own, in the middle of a start."""
        self.begin(doing)
        yield
        self.begin(Doing.QUERY)

    @property
    def age(self) -> tuple[Doing, int]:
        """What it does, and for how many ms."""
        doing, since_ms = self._now
        return doing, steady_ms(self._clock) - since_ms


@dataclass(frozen=True, slots=True)
class StepAge:
    """A step of a lane.

    Args:
        fragment: `network.fragment`, both without their participant.
        doing: a `Doing`, or one of a later version.
        age_ms: since when.
    """

    fragment: str
    doing: str
    age_ms: int

    @property
    def is_overdue(self) -> bool:
        """Whether it has taken longer than its limit."""
        limit_ms = LIMITS_MS.get(self.doing)
        return limit_ms is not None and self.age_ms > limit_ms

    @property
    def words(self) -> str:
        """What takes so long, and how long it has taken."""
        what = _WORDS.get(self.doing, "a step has taken {} so far")
        return what.format(durations.spell(self.age_ms // 1_000 * 1_000))


def encode_steps(steps: Sequence[StepAge], bytes_max: int = BYTES_MAX) -> bytes:
    """Steps as JSON, the oldest ones of too many: `{"tolls.moving":["batch",1200]}`."""
    found, length = {}, 1
    for one in sorted(steps, key=lambda one: -one.age_ms):
        if one.fragment in found:
            continue
        value = one.doing, one.age_ms
        length += len(_dumped({one.fragment: value})) - 1  # a comma, or the end, for its braces
        if length > bytes_max:
            break
        found[one.fragment] = value
    return _dumped(found)


def decode_steps(found: Json) -> tuple[StepAge, ...]:
    """Steps from their JSON; what is none is left out."""
    entries = found.items() if isinstance(found, dict) else ()
    return tuple(
        StepAge(fragment, doing, age_ms)
        for fragment, value in entries
        for doing, age_ms in ([value] if isinstance(value, list) and len(value) == _FIELDS else [])
        if isinstance(doing, str) and isinstance(age_ms, int)
    )


_FIELDS: Final = 2


def _dumped(steps: Mapping[str, tuple[str, int]]) -> bytes:
    return json.dumps(steps, separators=(",", ":")).encode()
