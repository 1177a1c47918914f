"""Followers in memory; they replace `pipeline/agent/followers.py`.

A follower repeats the batches of its owner, so the state that one leaves is that of a checkpoint of
the owner after some committed batch. When it becomes level, or fails, is drawn.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any, cast

from pipeline.agent.effects import Following
from pipeline.catalog.records import Standby
from pipeline.catalog.transfers import Transfers
from pipeline.clock import Clock, Deadline
from pipeline.errors import MedusaError
from pipeline.ids import Epoch, FragmentId, LaneId, LaneRole, Millis
from pipeline.lanes.follower_phases import FollowerPhase
from pipeline.spark.run.handover import FollowedState
from tests.histories.folders import Root
from tests.histories.turns import pause

LEVEL, FAILS = 0.4, 0.1
"""Probabilities that a follower becomes level, or fails, in a round."""
BEHIND_MAX = 3
"""Batches by which the state of a follower is behind its owner's checkpoint, at most."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The follower of a fragment that starts, as `Followed`."""

    left: FollowedState | None

    def query(self, *_: object) -> None:
        """It has no query in memory."""

    def state(self) -> FollowedState | None:
        """What it has left."""
        pause()
        return self.left


@dataclass(frozen=True, slots=True)
class Followers:
    """The followers of one node.

    Args:
        transfers: of the catalog.
        roots: the checkpoints of a node, by its name.
        rng: draws what they do.
        clock: of the end of a move.
        running: those that follow now.
    """

    transfers: Transfers
    roots: Callable[[str], Root]
    rng: Callable[[], Random]
    clock: Clock
    running: dict[FragmentId, Following]

    def follow(self, fragments: tuple[Following, ...]) -> None:
        """Follow these fragments, and no others."""
        wanted = {one.deployed.id: one for one in fragments}
        for fragment in self.running.keys() - wanted.keys():
            del self.running[fragment]
        for fragment, one in wanted.items():
            before = self.running.get(fragment)
            if before is None and not one.is_begun:
                continue
            if one.transfer is not None and (before is None or not before.goes_on(one)):
                self._note(self.transfers.note_failed, one.transfer, "")
            self.running[fragment] = one

    def look(self) -> None:
        """Let each of them be level, fail, or end with its time."""
        for following in list(self.running.values()):
            transfer, rng = following.transfer, self.rng()
            if transfer is None:
                continue
            if self.clock.now_ms() > transfer.until_ms:
                self._note(self.transfers.end, transfer)
            elif isinstance(following.fragment, MedusaError) or rng.random() < FAILS:
                self._note(self.transfers.note_failed, transfer, "it was drawn")
            elif rng.random() < LEVEL:
                self._note(self.transfers.note_ready, transfer)

    def take(self, fragment: FragmentId, epoch: Epoch) -> Taken | None:
        """The follower of a fragment that this node starts."""
        del epoch
        following = self.running.pop(fragment, None)
        return None if following is None else Taken(self._left(following))

    def standbys(self) -> tuple[Standby, ...]:
        """How far those are that follow as a secondary."""
        return tuple(
            Standby(fragment.network, fragment.fragment, FollowerPhase.LEVEL, "", Millis(0))
            for fragment, one in sorted(self.running.items())
            if one.is_standby
        )

    def hold(self, fragment: FragmentId) -> None:
        """Nothing happens between a claim and `take`."""

    def let_go(self, fragment: FragmentId) -> None:
        """The same."""

    def stop_all(self, deadline: Deadline) -> None:
        """End all of them."""
        del deadline
        self.running.clear()

    def _left(self, following: Following) -> FollowedState | None:
        one, transfer = following.deployed, following.transfer
        source = transfer.source if transfer else one.owner.node if one.owner else None
        if source is None:
            return None
        folders = self.roots(source).get(str(LaneId(one.id, LaneRole.STABLE)), {})
        found = folders.get(following.epoch)
        if found is None or found.incarnation is None or self.rng().random() < FAILS:
            return None
        batches = sorted(found.commits & found.states.keys())[-1 - BEHIND_MAX :]
        if not batches:
            return None
        last = self.rng().choice(batches)
        offsets = {batch: plan for batch, plan in found.offsets.items() if batch <= last}
        commits = {batch for batch in found.commits if batch <= last}
        left = replace(found, offsets=offsets, commits=commits, states=dict(found.states))
        return FollowedState(cast("Any", left), found.incarnation, one.record.version)

    def _note(self, note: Callable[..., bool], *arguments: Any) -> None:
        try:
            note(*arguments)
        except MedusaError:
            return
