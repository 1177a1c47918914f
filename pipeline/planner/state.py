"""What becomes of the positions and the state of a fragment that has run with another plan. Pure.

Positions fit every plan. A state fits the plans with the same `state_digest`; for any other plan
somebody has to choose, since no choice gives what an uninterrupted run would have given.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from pipeline.ids import FragmentName, Incarnation, Millis, StreamName
from pipeline.planner.digest import same_format, state_digest
from pipeline.planner.inputs import InputFrom
from pipeline.planner.plan import Fragment


class OnChange(Enum):
    """What becomes of a state that does not fit: its plan changed, or the log is too short."""

    REBUILD = "rebuild"
    """Compute it again from what the input topics still hold."""
    EMPTY = "empty"
    """Begin without any, where it has read to: what was read before counts in no later result.
    What its inputs no longer hold is passed over."""


@dataclass(frozen=True, slots=True)
class KeptState:
    """The state of a fragment that has run, as its last commit marker tells.

    Args:
        digest: `state_digest` of the plan that made it.
        incarnation: the life of the lane that holds it.
        same_sources: whether it was made of what the new plan reads, in the same order.
        promised_ms: the boundary that its lane has published last; None: none yet.
    """

    digest: str
    incarnation: Incarnation
    same_sources: bool = True
    promised_ms: Millis | None = None

    def fits(self, fragment: Fragment) -> bool:
        """Whether a plan can go on with it."""
        return self.same_sources and self.digest == state_digest(fragment)


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user chose with `--state` and `--input`.

    Args:
        every: for every fragment whose state does not fit; None: nothing.
        named: for single fragments, done even where the state would fit.
        inputs: for streams that a fragment has never read, or leaves before their end.
    """

    every: OnChange | None = None
    named: Mapping[FragmentName, OnChange] = field(default_factory=dict)
    inputs: Mapping[StreamName, InputFrom] = field(default_factory=dict)

    @property
    def some(self) -> bool:
        """Whether anything was chosen for a state."""
        return self.every is not None or bool(self.named)


NO_CHOICES = Choices()


class Fate(Enum):
    """What becomes of what a fragment has done so far."""

    POSITIONS = "positions"
    """It keeps no state: it goes on where it has read to."""
    KEPT = "kept"
    REBUILD = "rebuild"
    EMPTY = "empty"
    UNDECIDED = "undecided"
    """Its state does not fit, and nobody chose."""
    UNKNOWN = "unknown"
    """Another version of Medusa made its state, so that nobody knows yet whether it fits."""


CHOSEN = frozenset({Fate.REBUILD, Fate.EMPTY})
REBUILD_MEANS = "computed again from what the input topics still hold; published results stay"
EMPTY_MEANS = (
    "what was read before counts in no later result, and what is gone from its inputs in none; "
    "published results stay"
)
WORDS: Mapping[Fate, str] = {
    Fate.POSITIONS: "it goes on at its positions: nothing is lost or repeated",
    Fate.KEPT: "its state is kept: it goes on exactly where it is",
    Fate.REBUILD: f"its state is {REBUILD_MEANS}",
    Fate.EMPTY: f"its state begins empty: {EMPTY_MEANS}",
    Fate.UNDECIDED: "its state was made by another plan and does not fit",
    Fate.UNKNOWN: "another version of Medusa made its state: whether it fits is not known",
}


def fate(fragment: Fragment, kept: KeptState | None, choices: Choices) -> Fate:
    """What becomes of a fragment that has run.

    Args:
        fragment: its new plan.
        kept: its state; None when it has none worth keeping, because nothing was read.
        choices: what the user wants.
    """
    if kept is None:
        return Fate.POSITIONS
    if fragment.stateful_box is None:
        return Fate.EMPTY if fragment.name in choices.named else Fate.POSITIONS
    fits = kept.fits(fragment)
    chosen = choices.named.get(fragment.name, None if fits else choices.every)
    if chosen is not None:
        return Fate(chosen.value)
    if fits:
        return Fate.KEPT
    known = same_format(kept.digest, state_digest(fragment))
    return Fate.UNDECIDED if known else Fate.UNKNOWN
