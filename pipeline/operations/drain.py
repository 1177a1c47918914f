"""Draining of a node: it gives up what it runs to other nodes, and claims nothing."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pipeline.catalog.catalog import Catalog
from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.catalog.placing import Placement, place
from pipeline.catalog.records import Transfer
from pipeline.catalog.secondaries import may_run
from pipeline.catalog.snapshot import CatalogSnapshot, Deployed
from pipeline.clock import Clock, Deadline
from pipeline.errors import RefusedError
from pipeline.ids import FragmentId, NodeId, ParticipantId
from pipeline.operations.move import ask, transfer_of

_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Moved:
    """A fragment that another node runs now, and how long after the drain began it did, in ms."""

    fragment: FragmentId
    to: NodeId
    after_ms: int


@dataclass(frozen=True, slots=True)
class Drain:
    """The drain of one node of a participant.

    Args:
        node: its name.
        participant: whose.
        catalog: of the installation.
        clock: of the moves.
        asked: called with each move that was asked for.
    """

    node: NodeId
    participant: ParticipantId
    catalog: Catalog
    clock: Clock
    asked: Callable[[Transfer], None] = lambda _: None

    def begin(self, within_s: float) -> tuple[bool, tuple[FragmentId, ...]]:
        """Drain the node; what it runs moves afterwards.

        Each running fragment is asked to move where its placement allows, so that it pauses only
        for the change of its owner. One that has not moved in time leaves all the same, and its
        state is built by its next owner.

        Args:
            within_s: the time limit of these moves.

        Returns:
            Whether it was not drained before, and the fragments that it owns.

        Raises:
            RefusedError: no node of this name is known, or no other one may run what it runs.
        """
        found = self.catalog.snapshot(self.participant)
        owned = [one for one in found.fragments if one.owner and one.owner.node == self.node]
        if self.node not in found.alive | found.drained and not owned:
            there = ", ".join(sorted(found.alive))
            raise RefusedError(
                f"there is no node {self.node}",
                place=f"participant {self.participant}",
                hint=f"these are up: {there}." if there else "no node is up.",
            )
        self._check_others(owned, found)
        self._ask(owned, found, within_s)
        changed = self.catalog.drains.drain(self.participant, self.node, self.clock.now_ms())
        return changed, tuple(one.id for one in owned)

    def _ask(self, owned: Sequence[Deployed], found: CatalogSnapshot, within_s: float) -> None:
        """Ask for the moves of the running fragments that are not being moved, by priority.

        A target builds few states at the same time: it begins with those it reads of first.
        """
        there = {one.node: one for one in found.nodes}
        where = self._without(found).nodes
        for one in sorted(owned, key=lambda one: one.record.priority.order):
            target = there.get(where.get(one.id, self.node))
            if not one.running or target is None or target.node == self.node:
                continue
            if one.id in found.moving or self.node not in there:
                continue
            with suppress(RefusedError):  # its owner has changed meanwhile, or someone moves it
                transfer = transfer_of(one, target, self.clock.now_ms(), within_s)
                ask(self.catalog, transfer)
                self.asked(transfer)

    def _without(self, found: CatalogSnapshot) -> Placement:
        """The placement once the node is drained."""
        closed = found.drained | {self.node}
        return place(found.nodes, found.fragments, closed, level=found.level)

    def _check_others(self, owned: Sequence[Deployed], found: CatalogSnapshot) -> None:
        """Check that another node may run each fragment of the node, and has room for it."""
        closed = found.drained | {self.node}
        others = [one for one in found.nodes if one.node not in closed]
        stuck = [
            one
            for one in owned
            if one.running and not any(may_run(one.record, other) for other in others)
        ]
        if not stuck:
            self._check_room(owned, found)
            return
        labels = " and ".join(sorted({one.record.nodes for one in stuck} - {""}))
        which = f" with {labels}" if labels else ""
        raise RefusedError(
            f"no other node that is up may run {', '.join(str(one.id) for one in stuck)}",
            place=f"node {self.node}",
            hint=f"start another node{which}, or `medusa node undrain` one, or pause them.",
        )

    def _check_room(self, owned: Sequence[Deployed], found: CatalogSnapshot) -> None:
        """Check that no fragment would stay on the node, since the others are full."""
        where = self._without(found).nodes
        stays = [one for one in owned if one.running and where.get(one.id) == self.node]
        if stays:
            raise RefusedError(
                f"no other node has room for {', '.join(str(one.id) for one in stays)}",
                place=f"node {self.node}",
                hint="start another node, or one with more `most_fragments`, or pause them, or "
                "others of no higher priority.",
            )

    def await_moved(
        self,
        fragments: Iterable[FragmentId],
        deadline: Deadline,
        report: Callable[[Moved], None],
    ) -> tuple[Moved, ...]:
        """Wait until other nodes run the fragments that the node had.

        One that is not to run only has to leave it; one that was removed has left.

        Args:
            fragments: their ids.
            deadline: of the wait.
            report: called for each fragment that has moved.

        Raises:
            RetryError: the deadline has passed; names what has not moved.
        """
        began_s = self.clock.monotonic_s()
        moved: list[Moved] = []
        waiting = set(fragments)
        while waiting:
            there = {one.id: one for one in self.catalog.snapshot(self.participant).fragments}
            for fragment in sorted(waiting):
                one = there.get(fragment)
                status = self.catalog.statuses.get(fragment.network, fragment.fragment)
                if not self._has_left(one, status):
                    continue
                waiting.remove(fragment)
                if one is not None and one.owner is not None:
                    after_ms = round(1_000 * (self.clock.monotonic_s() - began_s))
                    moved.append(Moved(fragment, one.owner.node, after_ms))
                    report(moved[-1])
            if waiting:
                deadline.check(f"not moved yet: {', '.join(map(str, sorted(waiting)))}.")
                self.clock.sleep(_POLL_S)
        return tuple(moved)

    def _has_left(self, one: Deployed | None, status: FragmentStatus | None) -> bool:
        """Whether a fragment has left the node, and runs elsewhere if it is to run."""
        if one is None:
            return True
        if one.owner is None:
            return not one.running
        if one.owner.node == self.node:
            return False
        if not one.running:
            return True
        return (
            status is not None
            and status.state is LaneState.RUNNING
            and status.epoch == one.owner.epoch
        )
