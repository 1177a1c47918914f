"""What a node's polls read, as decided by the agent. Thread-safe."""

from collections.abc import Mapping

from pipeline.boundaries.profile import DerivedInput
from pipeline.catalog.snapshot import Deployed
from pipeline.ids import FragmentId, TopicName
from pipeline.planner.plan import Fragment


class Watched:
    """Set by the agent's loop, read by the polls; each value is replaced as a whole."""

    def __init__(self) -> None:
        self.topics: frozenset[TopicName] = frozenset()
        """The topics whose ends are polled."""
        self.derived: frozenset[DerivedInput] = frozenset()
        """The inputs whose boundaries are read."""
        self.derived_changes = 0
        """How often they have changed: a poll may miss a change that is undone at once."""
        self.elsewhere: tuple[tuple[Deployed, Fragment], ...] = ()
        """The fragments that other nodes run."""
        self.copied: Mapping[FragmentId, int] = {}
        """How often the checkpoint of each fragment is copied, in milliseconds."""

    def watch(self, topics: frozenset[TopicName], derived: frozenset[DerivedInput]) -> None:
        """Read these topics and inputs from now on."""
        changed = derived != self.derived
        self.topics, self.derived = topics, derived
        self.derived_changes += changed

    def rehearse(self, fragments: tuple[tuple[Deployed, Fragment], ...]) -> None:
        """Rehearse these fragments from now on."""
        self.elsewhere = fragments

    def copy(self, every_ms: Mapping[FragmentId, int]) -> None:
        """Copy the checkpoints of these fragments from now on, each so often."""
        self.copied = every_ms
