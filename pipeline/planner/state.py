"""The fate of the positions and the state of a fragment that has run with another plan. Pure.

Positions fit every plan. A state fits the plans with the same `state_digest`; for any other plan
the user has to choose, since no choice gives the results of an uninterrupted run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from pipeline.ids import FragmentName, Incarnation, Millis, StreamName
from pipeline.planner.digest import same_format, state_digest
from pipeline.planner.inputs import InputFrom
from pipeline.planner.plan import Fragment


class OnChange(Enum):
    """The choice for a state that does not fit: its plan changed, or the log is too short."""

    REBUILD = "rebuild"
    """Compute it again from the present contents of the input topics."""
    EMPTY = "empty"
    """Begin without a state, at the positions: records read before count in no later result.
    Records deleted from its inputs are passed over."""


@dataclass(frozen=True, slots=True)
class KeptState:
    """The state of a fragment that has run, from its last commit marker.

    Args:
        digest: `state_digest` of the plan that made it.
        incarnation: the incarnation of the lane that has it.
        same_sources: whether it was computed from the new plan's sources, in the same order.
        promised_ms: the last boundary that its lane has published; None: none yet.
    """

    digest: str
    incarnation: Incarnation
    same_sources: bool = True
    promised_ms: Millis | None = None

    def fits(self, fragment: Fragment) -> bool:
        """Whether a plan can continue with it."""
        return self.same_sources and self.digest == state_digest(fragment)


@dataclass(frozen=True, slots=True)
class Choices:
    """The user's choices with `--state` and `--input`.

    Args:
        every: for every fragment whose state does not fit; None: none.
        named: for single fragments, applied even if the state fits.
        inputs: for streams that a fragment has never read, or leaves before their end.
    """

    every: OnChange | None = None
    named: Mapping[FragmentName, OnChange] = field(default_factory=dict)
    inputs: Mapping[StreamName, InputFrom] = field(default_factory=dict)

    @property
    def some(self) -> bool:
        """Whether there is any choice for a state."""
        return self.every is not None or bool(self.named)


NO_CHOICES = Choices()


class Fate(Enum):
    """The fate of a fragment's positions and state."""

    POSITIONS = "positions"
    """It is stateless: it continues at its positions."""
    KEPT = "kept"
    REBUILD = "rebuild"
    EMPTY = "empty"
    UNDECIDED = "undecided"
    """Its state does not fit, and there is no choice."""
    UNKNOWN = "unknown"
    """Another version of Medusa made its state; whether it fits is unknown yet."""


CHOSEN = frozenset({Fate.REBUILD, Fate.EMPTY})
REBUILD_MEANS = (
    "computed again from what the input topics still hold, without what dead letters name; "
    "published results stay"
)
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
    """The fate of a fragment that has run.

    Args:
        fragment: its new plan.
        kept: its state; None if nothing was read.
        choices: the user's choices.
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
    comparable = same_format(kept.digest, state_digest(fragment))
    return Fate.UNDECIDED if comparable else Fate.UNKNOWN
