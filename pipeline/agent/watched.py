"""What a node's polls read, as decided by the agent. Thread-safe."""

from collections.abc import Mapping
from dataclasses import replace

from pipeline.agent.effects import Rehearse
from pipeline.boundaries.profile import DerivedInput
from pipeline.catalog.records import Standby
from pipeline.ids import FragmentId, TopicName


class Watched:
    """Set by the agent's loop, read by the polls; each value is replaced as a whole."""

    def __init__(self) -> None:
        self.topics: frozenset[TopicName] = frozenset()
        """The topics whose ends are polled."""
        self.derived: frozenset[DerivedInput] = frozenset()
        """The inputs whose boundaries are read."""
        self.derived_changes = 0
        """How often they have changed: a poll may miss a change that is undone at once."""
        self.rehearsals = Rehearse()
        """What is rehearsed."""
        self.rehearsed: frozenset[FragmentId] = frozenset()
        """Those of its standbys that were; set by the poll."""
        self.copied: Mapping[FragmentId, int] = {}
        """How often the checkpoint of each fragment is copied, in milliseconds."""

    def watch(self, topics: frozenset[TopicName], derived: frozenset[DerivedInput]) -> None:
        """Read these topics and inputs from now on."""
        changed = derived != self.derived
        self.topics, self.derived = topics, derived
        self.derived_changes += changed

    def rehearse(self, rehearsals: Rehearse) -> None:
        """Rehearse this from now on."""
        self.rehearsals = rehearsals

    def noted(self, standbys: tuple[Standby, ...]) -> tuple[Standby, ...]:
        """What the node has as a secondary, with whether it has rehearsed it."""
        return tuple(
            replace(one, is_rehearsed=True) if one.id in self.rehearsed else one for one in standbys
        )

    def copy(self, every_ms: Mapping[FragmentId, int]) -> None:
        """Copy the checkpoints of these fragments from now on, each so often."""
        self.copied = every_ms
