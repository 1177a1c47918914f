"""State machine of a fork, a tentative lane: when it begins, publishes and ends. Pure.

Delay, process and correct (Balazinska et al., SIGMOD 2005), for one fragment: results that are held
back are published as tentative ones when they have been wanted for 0.9 X. The stable lane only
waits, so a second copy of it is not needed while it corrects them.

The diagram in `docs/lane-states.md` is made from `TRANSITIONS`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from pipeline.availability import Availability, Policy
from pipeline.boundaries.deadline import Held, Watch, wanted_before
from pipeline.boundaries.lane_time import Steered
from pipeline.errors import BrokenInvariantError
from pipeline.ids import Millis
from pipeline.markers.positions import InputPartition

WAIT_PART: Final = 0.9
"""The part of the bound after which results are published, as in Borealis."""
CANCEL_PART: Final = 0.25
"""A fork that publishes nothing yet ends when nothing has been wanted for longer than this part of
the bound; it begins only when something has been for twice as long, so that none begins and ends in
turns."""
FIRST_LATENCY_MS: Final = 500
"""Duration of a batch before one was measured."""
FIRST_READY_MS: Final = 3_000
"""Duration of the preparation of a fork before one was measured."""
RETRY_MS: Final = 1_000
RETRY_MOST_MS: Final = 60_000


class ForkPhase(Enum):
    """Phase of a fork."""

    ABSENT = "absent"
    PREPARING = "preparing"
    """It links the checkpoint of its lane, and begins its query."""
    READY = "ready"
    """It reads on, and publishes nothing: the deadline has not come."""
    PUBLISHING = "publishing"
    """It publishes tentative results."""
    RESTING = "resting"
    """It has failed, and is tried again later."""


class ForkEvent(Enum):
    """Event of a fork."""

    DUE = "due"
    """Results have been wanted so long that a fork will be needed."""
    PREPARED = "prepared"
    EXPIRED = "expired"
    """The deadline has come."""
    OVER = "over"
    """The stable lane goes on: nothing is held back any more."""
    OUTDATED = "outdated"
    """Tentative results of an input, which it has read, are settled, or others come in their
    place: what it computes of them is, too."""
    FAILED = "failed"
    RESTED = "rested"


_RUNNING: Final = (ForkPhase.PREPARING, ForkPhase.READY, ForkPhase.PUBLISHING)
TRANSITIONS: Mapping[tuple[ForkPhase, ForkEvent], ForkPhase] = MappingProxyType(
    {
        (ForkPhase.ABSENT, ForkEvent.DUE): ForkPhase.PREPARING,
        (ForkPhase.PREPARING, ForkEvent.PREPARED): ForkPhase.READY,
        (ForkPhase.READY, ForkEvent.EXPIRED): ForkPhase.PUBLISHING,
        **{(one, ForkEvent.OVER): ForkPhase.ABSENT for one in _RUNNING},
        **{(one, ForkEvent.OUTDATED): ForkPhase.ABSENT for one in _RUNNING},
        **{(one, ForkEvent.FAILED): ForkPhase.RESTING for one in _RUNNING},
        (ForkPhase.RESTING, ForkEvent.RESTED): ForkPhase.ABSENT,
    }
)


@dataclass(frozen=True, slots=True)
class Measured:
    """How long parts of a fork take.

    Args:
        latency_ms: of a batch, from its plan until its results are there.
        ready_ms: from the beginning of a fork until it can publish.
    """

    latency_ms: int = FIRST_LATENCY_MS
    ready_ms: int = FIRST_READY_MS

    def with_latency(self, ms: int) -> "Measured":
        """The same with the duration of another batch: the mean moves by a quarter."""
        return Measured(self.latency_ms + (ms - self.latency_ms) // 4, self.ready_ms)


def waits_ms(availability: Availability, measured: Measured) -> int:
    """How long results are wanted before a batch publishes them.

    Not less than until a fork begins, however long a batch takes: what the fastest partition has
    passed just now is not missing in the others.
    """
    least_ms = 2 * round(CANCEL_PART * availability.bound_ms)
    return max(least_ms, round(WAIT_PART * availability.bound_ms) - measured.latency_ms)


def after(phase: ForkPhase, event: ForkEvent, place: str) -> ForkPhase:
    """The phase after an event.

    Raises:
        BrokenInvariantError: the event is illegal in this phase.
    """
    found = TRANSITIONS.get((phase, event))
    if found is None:
        message = f"a fork that is {phase.value} cannot have {event.value}"
        raise BrokenInvariantError(message, place=place)
    return found


def next_event(
    phase: ForkPhase,
    watch: Watch,
    held: Held | None,
    availability: Availability,
    measured: Measured,
) -> ForkEvent | None:
    """What happens to a fork now because of time; None: nothing.

    While the stable lane reads what has come at last, a fork that publishes goes on: new results
    come from it until the lane is level again. Then it ends, unless something has been held back so
    long that another one would begin: a partition that is always somewhat behind keeps none.

    Args:
        phase: its phase.
        watch: of its stable lane.
        held: the results that the lane holds back.
        availability: of its fragment.
        measured: how long its parts take.
    """
    least_ms = round(CANCEL_PART * availability.bound_ms)
    if phase is ForkPhase.PUBLISHING:
        is_over = held is None or held.for_ms < 2 * least_ms
        return ForkEvent.OVER if is_over and watch.level_ms is not None else None
    counts_ms = None if held is None else held.counts_ms
    held_ms = counts_ms or 0
    if phase in _RUNNING and held_ms < least_ms:
        return ForkEvent.OVER
    waits = waits_ms(availability, measured)
    if phase is ForkPhase.ABSENT and counts_ms is not None:
        due_ms = max(2 * least_ms, waits - measured.ready_ms)
        return ForkEvent.DUE if held_ms >= due_ms else None
    return ForkEvent.EXPIRED if phase is ForkPhase.READY and held_ms >= waits else None


def reads_early(phase: ForkPhase, *, by_time: bool) -> bool:
    """Whether a fork in a phase reads tentative records of its inputs, if there are some.

    Before the deadline only one whose results event time releases: another one has results of a
    record when it reads it, and they would be lost.

    Args:
        phase: of the fork.
        by_time: whether event time releases all of its results.
    """
    return phase is ForkPhase.PUBLISHING or (by_time and phase in _RUNNING)


def begun(stable: Watch, availability: Availability, measured: Measured) -> Steered:
    """How the event time of a fork moves from its deadline on.

    Partitions that have not passed what was wanted when the wait began step aside, until the fork
    ends: what they bring later is for the stable lane. A partition that is only a little behind the
    first one is waited for as by any lane.

    Args:
        stable: of its stable lane.
        availability: of its fragment.
        measured: how long its parts take.
    """
    missing = _missing(stable, waits_ms(availability, measured))
    return _limited(Steered(missing), (stable,), availability, measured)


def steered(
    stable: Watch,
    own: Watch,
    before: Steered,
    availability: Availability,
    measured: Measured,
) -> Steered:
    """How the event time of a fork that publishes moves now.

    What has become missing meanwhile steps aside after the same wait, unless the fork itself was
    behind its inputs in it.

    Args:
        stable: of its stable lane.
        own: of its own event time.
        before: how it has moved until now.
        availability: of its fragment.
        measured: how long its parts take.
    """
    waits, missing = waits_ms(availability, measured), frozenset[InputPartition]()
    if own.level_ms is not None and own.level_ms <= own.ago(waits):
        missing = _missing(own, waits)
    found = Steered(before.without | missing, before.most_ms)
    return _limited(found, (stable, own), availability, measured)


def _missing(watch: Watch, waits: int) -> frozenset[InputPartition]:
    """The partitions that have not passed what was wanted when the wait began."""
    due_ms = wanted_before(watch, watch.ago(waits))
    if due_ms is None or watch.wanted is None:
        return frozenset()
    return watch.wanted.missing(due_ms)


def _limited(
    found: Steered, seen: Sequence[Watch], availability: Availability, measured: Measured
) -> Steered:
    """The limit of event time: with the policy `delay` each result waits as long as the first.

    A stable lane whose state is full does not see what comes; the fork does.
    """
    if availability.policy is Policy.PROCESS:
        return Steered(found.without)
    waits = waits_ms(availability, measured)
    due = (wanted_before(one, one.ago(waits)) or Millis(0) for one in seen)
    return Steered(found.without, max(*due, found.most_ms or Millis(0)))


def rest_ms(failures: int) -> int:
    """How long a fork rests after so many failures in a row."""
    return min(RETRY_MOST_MS, RETRY_MS << min(failures - 1, 16))
