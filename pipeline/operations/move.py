"""Moves of fragments to other nodes, asked for by a user."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from brokers.kafka_interface import TopicAdmin, complete
from brokers.log_reader import LogReader
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.catalog.placing import place
from pipeline.catalog.records import NodeRecord, Transfer
from pipeline.catalog.secondaries import may_run
from pipeline.catalog.snapshot import CatalogSnapshot, Deployed
from pipeline.clock import Clock, Deadline
from pipeline.counting import counted
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import FragmentId, Millis, NodeId, ParticipantId
from pipeline.operations.positions import marker_in
from pipeline.operations.program_versions import is_earlier

_POLL_S = 0.1


class Step(Enum):
    """How far a move is."""

    WANTED = "wanted"
    """The target builds the state, and follows the owner."""
    READY = "ready"
    """The follower is level; the owner stops after its batch."""
    RELEASED = "released"
    """The fragment has no owner until the target claims it."""
    OVER = "over"
    """Its owner or its version has changed, it is to stop, or the target is not as it was: the move
    has no effect."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A done move; `after_ms`: from the request until the target ran the fragment."""

    transfer: Transfer
    after_ms: int


@dataclass(frozen=True, slots=True)
class Moves:
    """The moves of a participant's fragments.

    Args:
        participant: whose.
        catalog: of the installation.
        topics: Kafka's topics.
        log: reads last records.
        clock: of the moves.
    """

    participant: ParticipantId
    catalog: Catalog
    topics: TopicAdmin
    log: LogReader
    clock: Clock

    def planned(self, fragment: FragmentId, to: NodeId, within_s: float) -> Transfer:
        """The move of a fragment to a node; nothing is changed.

        Args:
            fragment: its id.
            to: the target.
            within_s: after which time the move ends if it is not done.

        Raises:
            RefusedError: the fragment cannot be moved, or not to this node.
        """
        found = self.catalog.snapshot(self.participant)
        one = _deployed(fragment, found)
        owner = self._owner(one, found)
        target = _target(to, found)
        if owner.node == to:
            raise RefusedError(f"node {to} runs it already", place=one.place)
        _check_version(one, owner, target)
        _check_place(one, target, found)
        self._check_log(one)
        return transfer_of(one, target, self.clock.now_ms(), within_s)

    def _owner(self, one: Deployed, found: CatalogSnapshot) -> NodeRecord:
        """The node that runs a fragment.

        Raises:
            RefusedError: none does, or not well enough for a move.
        """
        if not one.running:
            raise RefusedError(
                f"it is {one.record.desired.value}",
                place=one.place,
                hint="only a running one moves: `medusa resume` or `medusa deploy` starts it.",
            )
        name = None if one.owner is None else one.owner.node
        owner = next((node for node in found.nodes if node.node in found.alive & {name}), None)
        if owner is None:
            what = "no node has claimed it" if name is None else f"its node {name} is down"
            raise RefusedError(
                what, place=one.place, hint="the node that its placement allows claims it anyway."
            )
        if (failure := self._failure(one)) is not None:
            raise RefusedError(
                f"its lane has failed on node {name}: {failure}",
                place=one.place,
                hint="mend the cause first; a deploy, or a pause and a resume, starts it again.",
            )
        return owner

    def _check_log(self, one: Deployed) -> None:
        """Check that the state can be built from the log: no file of the owner is read.

        Raises:
            RefusedError: records that it needs were removed.
        """
        marker = marker_in(one.names, self.log)
        if marker is None:
            return
        topics = sorted({at.topic for at in marker.needed})
        starts = complete(self.topics.start_offsets(topics), topics)
        for at, offset in sorted(marker.needed.items()):
            begin = starts[at.topic].get(at.partition)
            if begin is not None and offset < begin and offset < marker.end.get(at, offset):
                raise RefusedError(
                    f"its state needs the records from offset {offset} on, the topic begins at "
                    f"{begin}: another node cannot build it",
                    place=f"topic {at.topic}, partition {at.partition}",
                    hint="raise `retention.ms` of the topic; it can move once the state needs "
                    "none of the records that are gone.",
                )

    def ask(self, transfer: Transfer) -> None:
        """Ask for a planned move.

        Raises:
            RefusedError: the fragment moves already, or its owner has changed meanwhile.
        """
        ask(self.catalog, transfer)

    def cancel(self, fragment: FragmentId) -> Transfer:
        """End the move of a fragment before the target has claimed it; returns it.

        Raises:
            RefusedError: it is not being moved.
        """
        every = self.catalog.transfers.of(self.participant)
        transfer = next((one for one in every if one.id == fragment), None)
        if transfer is None or not self.catalog.transfers.end(transfer):
            raise RefusedError("it is not being moved", place=f"fragment {fragment}")
        return transfer

    def all(self) -> tuple[tuple[Transfer, Step], ...]:
        """All transfers, each with its step."""
        found = self.catalog.snapshot(self.participant)
        return tuple((one, step_of(one, found)) for one in found.transfers)

    def await_done(
        self, transfer: Transfer, deadline: Deadline, report: Callable[[Step], None]
    ) -> Moved:
        """Wait until the target runs the fragment; `report` is called with each new step.

        Raises:
            RetryError: it was ended, or is not done in time; then it is cancelled.
        """
        last: Step | None = None
        while True:
            found = self.catalog.snapshot(self.participant)
            one = next((one for one in found.fragments if one.id == transfer.id), None)
            if self._is_done(transfer, one):
                return Moved(transfer, self.clock.now_ms() - transfer.asked_at_ms)
            stored = next((one for one in found.transfers if one.is_same(transfer)), None)
            self._check_runs(transfer, one)
            claimed = one is not None and one.owner is not None and one.owner.node == transfer.to
            if stored is None and not claimed:
                raise RetryError(
                    "the move was ended: by a claim, a pause or a deploy, or by its time limit",
                    place=f"fragment {transfer.id}",
                    hint="`medusa status` shows where it runs.",
                )
            step = Step.RELEASED if stored is None else step_of(stored, found)
            if step is not last:
                last = step
                report(step)
            if deadline.passed:
                raise self._too_late(transfer, stored)
            self.clock.sleep(_POLL_S)

    def _check_runs(self, transfer: Transfer, one: Deployed | None) -> None:
        """Check that the lane has not failed on the target, once that has claimed.

        Raises:
            RetryError: it has.
        """
        if one is None or one.owner is None or one.owner.node != transfer.to:
            return
        if (failure := self._failure(one)) is not None:
            raise RetryError(
                f"node {transfer.to} has claimed it, and it has failed there: {failure}",
                place=f"fragment {transfer.id}",
                hint="the move is over: mend the cause; a deploy, or a pause and a resume, "
                "starts it again.",
            )

    def _failure(self, one: Deployed) -> str | None:
        """Why the lane of a fragment has failed under its present owner; None: it has not."""
        status = self.catalog.statuses.get(one.id.network, one.id.fragment)
        if status is None or one.owner is None or status.epoch != one.owner.epoch:
            return None
        return status.last_error if status.state is LaneState.FAILED else None

    def _too_late(self, transfer: Transfer, stored: Transfer | None) -> RetryError:
        ended = self.catalog.transfers.end(transfer)
        why = f": {stored.problem}" if stored is not None and stored.problem else ""
        text = "and is cancelled" if ended else "and goes on"
        return RetryError(
            f"the move is not done in time, {text}{why}",
            place=f"fragment {transfer.id}",
            hint=f"the log of node {transfer.to} says how far it came; a large state needs a "
            "longer `--timeout`.",
        )

    def _is_done(self, transfer: Transfer, one: Deployed | None) -> bool:
        if one is None or one.owner is None or one.owner.node != transfer.to:
            return False
        status = self.catalog.statuses.get(transfer.network, transfer.fragment)
        return _runs(status) and status is not None and status.epoch == one.owner.epoch


def ask(catalog: Catalog, transfer: Transfer) -> None:
    """Ask for a move; one of the fragment that is over is replaced.

    Raises:
        RefusedError: as by `Moves.ask`.
    """
    found = catalog.snapshot(transfer.network.participant)
    over = tuple(one for one in found.transfers if step_of(one, found) is Step.OVER)
    catalog.transfers.ask(transfer, over)


def transfer_of(one: Deployed, to: NodeRecord, now_ms: Millis, within_s: float) -> Transfer:
    """The move of a fragment from its owner to a node.

    Raises:
        RefusedError: it has no owner.
    """
    if one.owner is None:
        raise RefusedError("no node has claimed it", place=one.place)
    return Transfer(
        network=one.id.network,
        life=one.network.life,
        fragment=one.id.fragment,
        version=one.record.version,
        source=one.owner.node,
        epoch=one.owner.epoch,
        to=to.node,
        to_life=to.started_at_ms,
        asked_at_ms=now_ms,
        until_ms=Millis(now_ms + round(1_000 * within_s)),
        is_ready=False,
        problem="",
    )


def step_of(transfer: Transfer, found: CatalogSnapshot) -> Step:
    """How far a transfer is, by a snapshot that contains it."""
    if transfer.id not in found.moving:
        return Step.OVER
    one, _ = found.moving[transfer.id]
    if one.owner is None:
        return Step.RELEASED
    return Step.READY if transfer.is_ready else Step.WANTED


def _runs(status: FragmentStatus | None) -> bool:
    return status is not None and status.state is LaneState.RUNNING


def _deployed(fragment: FragmentId, found: CatalogSnapshot) -> Deployed:
    one = next((one for one in found.fragments if one.id == fragment), None)
    if one is None:
        there = ", ".join(str(one.id) for one in found.fragments)
        raise RefusedError(
            f"there is no fragment {fragment}",
            hint=f"there is: {there}." if there else "no network is deployed.",
        )
    return one


def _check_version(one: Deployed, owner: NodeRecord, target: NodeRecord) -> None:
    """Check that the target's version of Medusa is that of the owner, or a later one.

    An earlier one may be unable to plan the fragment, or make another plan of it; then its follower
    fails, or its lane after the owner's has ended.

    Raises:
        RefusedError: it is an earlier one.
    """
    if not is_earlier(target.version, owner.version):
        return
    raise RefusedError(
        f"node {target.node} runs Medusa {target.version}, its owner {owner.node} {owner.version}: "
        "an earlier version may not be able to plan it, or to go on with its state",
        place=one.place,
        hint=f"start {target.node} with Medusa {owner.version}, or choose another node. To go back "
        f"to the earlier version, `medusa node drain {owner.node}`.",
    )


def _check_place(one: Deployed, target: NodeRecord, found: CatalogSnapshot) -> None:
    """Check that a fragment may run on a node, and that there is room for it.

    Raises:
        RefusedError: the placement does not allow the node, or it is drained or full.
    """
    to = target.node
    if not may_run(one.record, target):
        raise RefusedError(
            f"its placement does not allow node {to}: it needs {one.record.nodes}",
            place=one.place,
            hint="change `placement` in the document, or choose another node.",
        )
    if to in found.drained:
        hint = f"`medusa node undrain {to}` ends that."
        raise RefusedError(f"node {to} is drained", place=one.place, hint=hint)
    where = place(found.nodes, found.fragments, found.drained, {one.id: to}, level=found.level)
    if where.nodes.get(one.id) != to:
        most = counted(target.most_fragments, "fragment")
        raise RefusedError(
            f"node {to} has no room for it: {most} may run there, and none of those that do "
            f"has a lower priority than {one.record.priority.value}",
            place=one.place,
            hint="move or pause one of them, or start the node with more `most_fragments`.",
        )


def _target(to: NodeId, found: CatalogSnapshot) -> NodeRecord:
    target = next((one for one in found.nodes if one.node == to), None)
    if target is None:
        there = ", ".join(sorted(found.alive))
        raise RefusedError(
            f"no node {to} of this participant is up",
            hint=f"these are up: {there}." if there else "no node is up.",
        )
    return target
