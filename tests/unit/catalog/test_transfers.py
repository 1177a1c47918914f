"""Transfers of fragments."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokers.versioned_store import Operation, Set
from pipeline.catalog.backup import read
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.codec import encode
from pipeline.catalog.records import DesiredState, OwnerRecord, Transfer, TransfersRecord
from pipeline.catalog.snapshot import Leaving
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import FragmentId, FragmentName, Millis, NetworkLife, NetworkVersion, NodeId
from pipeline.names import Znodes
from tests.memory_store import MemoryTree
from tests.profiles import examples
from tests.unit.catalog.support import (
    LIFE,
    ME,
    MOVING,
    NODE1,
    NODE2,
    NOW,
    TOLLS,
    deployed,
    node,
    session,
)

ID = FragmentId(TOLLS, MOVING)
NODE3 = NodeId("node3")


def owner(catalog: Catalog) -> OwnerRecord | None:
    """The owner of the fragment."""
    return catalog.owners.get(TOLLS, MOVING)


def owned(*nodes: NodeId) -> Catalog:
    """A catalog whose fragment the first node owns; all of them are up."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    for name in nodes:
        catalog.nodes.register(node(name))
    catalog.owners.claim(TOLLS, MOVING, node(nodes[0]), NOW)
    return catalog


def move(catalog: Catalog, to: NodeId = NODE2) -> Transfer:
    """The move of the fragment from its present owner."""
    found = owner(catalog)
    assert found is not None
    return Transfer(
        network=TOLLS,
        life=LIFE,
        fragment=MOVING,
        version=NetworkVersion(1),
        source=found.node,
        epoch=found.epoch,
        to=to,
        to_life=NOW,
        asked_at_ms=NOW,
        until_ms=Millis(NOW + 1_000),
        is_ready=False,
        problem="",
    )


def test_a_move_goes_from_step_to_step() -> None:
    """Each step raises the revision, so that nodes read the catalog; the claim ends it."""
    catalog = owned(NODE1, NODE2)
    transfer, revision = move(catalog), catalog.networks.revision(ME)
    catalog.transfers.ask(transfer)
    found = catalog.snapshot(ME)
    assert [one for _, one in found.followed_by(NODE2)] == [transfer]
    assert found.followed_by(NODE1) == ()
    assert found.leaving(NODE1) == {}
    assert catalog.transfers.note_failed(transfer, "no disk")
    assert catalog.transfers.of(ME) == (replace(transfer, problem="no disk"),)
    assert catalog.transfers.note_ready(transfer)
    assert catalog.networks.revision(ME) == revision + 3
    found, before = catalog.snapshot(ME), owner(catalog)
    assert before is not None
    (one,) = found.fragments
    assert found.leaving(NODE1) == {
        ID: Leaving(before, NODE2, one.record, replace(transfer, is_ready=True))
    }
    assert found.assigned_to(NODE2) == ()
    assert catalog.owners.release(ID, found.leaving(NODE1)[ID])
    found = catalog.snapshot(ME)
    assert [one.id for one in found.assigned_to(NODE2)] == [ID]
    assert found.assigned_to(NODE1) == ()
    assert [one.id for one, _ in found.followed_by(NODE2)] == [ID]
    catalog.owners.claim(TOLLS, MOVING, node(NODE2), NOW)
    assert catalog.transfers.of(ME) == ()
    after = owner(catalog)
    assert after is not None
    assert (after.node, after.epoch) == (NODE2, transfer.epoch + 1)


def test_a_claim_ends_a_move() -> None:
    """Also by the present owner: what the follower was level with is no longer the last word."""
    catalog = owned(NODE1, NODE2)
    transfer = move(catalog)
    catalog.transfers.ask(transfer)
    catalog.owners.claim(TOLLS, MOVING, node(NODE1), NOW)
    assert catalog.transfers.of(ME) == ()
    assert not catalog.transfers.note_ready(transfer)
    assert not catalog.transfers.note_failed(transfer, "x")
    assert not catalog.transfers.end(transfer)


def test_a_fragment_moves_once_at_a_time() -> None:
    """A cancelled move does not come back by a late step of its target."""
    catalog = owned(NODE1, NODE2, NODE3)
    transfer = move(catalog)
    catalog.transfers.ask(transfer)
    with pytest.raises(RefusedError, match="moved to node node2 already") as caught:
        catalog.transfers.ask(move(catalog, NODE3))
    assert "--cancel" in caught.value.hint
    assert catalog.transfers.end(transfer)
    assert not catalog.transfers.note_ready(transfer)
    catalog.transfers.ask(move(catalog, NODE3))
    assert not catalog.transfers.end(transfer)
    assert [one.to for one in catalog.transfers.of(ME)] == [NODE3]


def test_a_move_of_another_ownership_is_refused() -> None:
    """The command has read the catalog before."""
    catalog = owned(NODE1, NODE2)
    transfer = move(catalog)
    catalog.owners.claim(TOLLS, MOVING, node(NODE1), NOW)
    with pytest.raises(RefusedError, match="owner has changed"):
        catalog.transfers.ask(transfer)
    with pytest.raises(RefusedError, match="node1 runs it already"):
        catalog.transfers.ask(move(catalog, NODE1))
    with pytest.raises(RefusedError, match="owner has changed"):
        catalog.transfers.ask(replace(move(catalog), version=NetworkVersion(2)))


@pytest.mark.parametrize(
    "other",
    [
        lambda one: replace(one, life=NetworkLife("another")),
        lambda one: replace(one, version=NetworkVersion(2)),
        lambda one: replace(one, source=NODE3),
        lambda one: replace(one, epoch=one.epoch + 1),
        lambda one: replace(one, to_life=NOW - 1),
    ],
)
def test_a_move_of_something_else_has_no_effect(other: Callable[[Transfer], Transfer]) -> None:
    """Of an earlier life, version or owner; or the target was started again."""
    catalog = owned(NODE1, NODE2)
    found = replace(catalog.snapshot(ME), transfers=(replace(other(move(catalog)), is_ready=True),))
    assert found.followed_by(NODE2) == ()
    assert found.leaving(NODE1) == {}


def test_a_pause_ends_a_move() -> None:
    """Its follower has ended by the time of the resume; it does not count as level then."""
    catalog = owned(NODE1, NODE2)
    transfer = move(catalog)
    catalog.transfers.ask(transfer)
    catalog.transfers.note_ready(transfer)
    catalog.fragments.set_desired(TOLLS, DesiredState.PAUSED, (MOVING,), DesiredState.RUNNING)
    assert catalog.transfers.of(ME) == ()
    catalog.fragments.set_desired(TOLLS, DesiredState.RUNNING, (MOVING,), DesiredState.PAUSED)
    assert catalog.snapshot(ME).leaving(NODE1) == {}


def test_a_released_fragment_goes_to_the_target_that_was_ready() -> None:
    """Not to one that was not."""
    catalog = owned(NODE1, NODE2)
    transfer = move(catalog)
    released = replace(catalog.snapshot(ME).fragments[0], owner=None)
    assert released.fits(replace(transfer, is_ready=True))
    assert not released.fits(transfer)


def test_a_target_that_is_down_or_drained_gets_nothing() -> None:
    """The node that it is placed on claims it; a drain ends the moves to the node."""
    catalog = owned(NODE1, NODE2)
    transfer = move(catalog, NODE3)
    catalog.transfers.ask(transfer)
    catalog.transfers.note_ready(transfer)
    assert catalog.snapshot(ME).leaving(NODE1) == {}
    catalog.nodes.register(node(NODE3))
    assert catalog.snapshot(ME).leaving(NODE1) != {}
    catalog.drains.drain(ME, NODE3, NOW)
    assert catalog.snapshot(ME).leaving(NODE1) == {}
    catalog.drains.undrain(ME, NODE3)
    assert catalog.transfers.of(ME) == ()


def test_a_target_whose_labels_do_not_fit_any_more_gets_nothing() -> None:
    """A deploy that changes only the placement changes no version of the fragment."""
    catalog = owned(NODE1, NODE2)
    transfer = replace(move(catalog), is_ready=True)
    (one,) = catalog.snapshot(ME).fragments
    placed = replace(one, record=replace(one.record, nodes="zone=b"))
    found = replace(catalog.snapshot(ME), fragments=(placed,), transfers=(transfer,))
    assert found.moving == {}
    assert found.leaving(NODE1) == {}


def test_a_move_that_is_over_is_replaced() -> None:
    """One whose target was started again, for instance; the caller has compared that."""
    catalog = owned(NODE1, NODE2)
    old = replace(move(catalog), to_life=Millis(NOW - 1))
    catalog.transfers.ask(old)
    with pytest.raises(RefusedError, match="already"):
        catalog.transfers.ask(move(catalog))
    catalog.transfers.ask(move(catalog), over=(old,))
    assert catalog.transfers.of(ME) == (move(catalog),)


def test_claims_of_two_fragments_that_move_do_not_disturb_each_other() -> None:
    """Both remove their transfer from one record; what has changed is only that."""
    store, catalog = session(MemoryTree())
    deployed(catalog)
    for name in (NODE1, NODE2):
        catalog.nodes.register(node(name))
    catalog.owners.claim(TOLLS, MOVING, node(NODE1), NOW)
    other = replace(move(catalog), fragment=FragmentName("other"), until_ms=Millis(1))
    catalog.transfers.ask(move(catalog))
    apply, calls = store.apply, list[int]()

    def disturbed(operations: tuple[Operation, ...]) -> None:
        """Another transfer changes first, once."""
        if not calls:
            calls.append(1)
            path = Znodes().transfers(ME)
            found = store.get(path)
            assert found is not None
            both = TransfersRecord((*catalog.transfers.of(ME), other))
            apply((Set(path, encode(both), found.version),))
        apply(operations)

    store.apply = disturbed  # type: ignore[method-assign]
    assert catalog.owners.claim(TOLLS, MOVING, node(NODE1), NOW).epoch == 2
    assert catalog.transfers.of(ME) == (other,)


def test_a_backup_does_not_contain_them() -> None:
    """They are about running nodes, as owners are."""
    store, catalog = session(MemoryTree())
    deployed(catalog)
    catalog.owners.claim(TOLLS, MOVING, node(NODE1), NOW)
    before = set(read(store, NOW).entries)
    catalog.transfers.ask(move(catalog))
    assert set(read(store, NOW).entries) == before


def test_a_move_that_was_cancelled_is_not_released() -> None:
    """The owner may have ended its lane for it: it goes on as the owner."""
    catalog = owned(NODE1, NODE2)
    transfer = move(catalog)
    catalog.transfers.ask(transfer)
    catalog.transfers.note_ready(transfer)
    seen = catalog.snapshot(ME).leaving(NODE1)[ID]
    assert catalog.transfers.end(transfer)
    assert not catalog.owners.release(ID, seen)
    assert owner(catalog) == seen.owner
    assert [one.id for one in catalog.snapshot(ME).assigned_to(NODE1)] == [ID]


def test_a_drain_that_was_undone_releases_nothing() -> None:
    """Nor does a deploy that has undone the placement for which the lane has ended."""
    catalog = owned(NODE1, NODE2)
    catalog.drains.drain(ME, NODE1, NOW)
    seen = catalog.snapshot(ME).leaving(NODE1)[ID]
    catalog.drains.undrain(ME, NODE1)
    assert not catalog.owners.release(ID, seen)
    catalog.drains.drain(ME, NODE1, NOW)
    placed = replace(seen, record=replace(seen.record, nodes="zone=b"))
    assert not catalog.owners.release(ID, placed)
    assert catalog.owners.release(ID, seen)


def test_a_drained_node_runs_what_it_has_released_if_its_target_ends() -> None:
    """And gives it up again once another node is up."""
    tree = MemoryTree()
    _, catalog = session(tree)
    deployed(catalog)
    catalog.nodes.register(node())
    catalog.owners.claim(TOLLS, MOVING, node(), NOW)
    of_target, target = session(tree)
    target.nodes.register(node(NODE2))
    transfer = move(catalog)
    catalog.transfers.ask(transfer)
    catalog.drains.drain(ME, NODE1, NOW)
    catalog.transfers.note_ready(transfer)
    (leaving,) = catalog.snapshot(ME).leaving(NODE1).values()
    assert catalog.owners.release(ID, leaving)
    assert catalog.snapshot(ME).assigned_to(NODE1) == ()
    with pytest.raises(RetryError, match="node node1 is drained"):
        catalog.owners.claim(TOLLS, MOVING, node(), NOW)
    of_target.expire()
    assert [one.id for one in catalog.snapshot(ME).assigned_to(NODE1)] == [ID]
    assert catalog.owners.claim(TOLLS, MOVING, node(), NOW).epoch == 2
    there = catalog.snapshot(ME)
    assert (there.leaving(NODE1), len(there.assigned_to(NODE1))) == ({}, 1)
    catalog.nodes.register(node(NODE3))
    assert [one.to for one in catalog.snapshot(ME).leaving(NODE1).values()] == [NODE3]


STEPS = (
    "ask 1",
    "ask 2",
    "ask 3",
    "ready",
    "fail",
    "end",
    "read",
    "release",
    "claim 1",
    "claim 2",
    "claim 3",
    "pause",
    "resume",
    "drain 1",
    "drain 2",
    "drain 3",
    "undrain 1",
    "undrain 2",
    "undrain 3",
)


class Course:
    """Any order of what users, owners, targets and other nodes do, each by its own reading.

    The owner releases by what it has read last, which others may have changed since.
    """

    def __init__(self) -> None:
        self.catalog = owned(NODE1, NODE2, NODE3)
        self.asked: list[Transfer] = []
        self.epochs = [1]
        self.seen = self.catalog.snapshot(ME)

    def do(self, step: str) -> None:
        """One step; one that has lost, or is not allowed, changes nothing."""
        what, _, number = step.partition(" ")
        at = NodeId(f"node{number or 1}")
        with suppress(RefusedError, RetryError):
            getattr(self, f"_{what}")(at)
        found = owner(self.catalog)
        if found is not None and found.epoch != self.epochs[-1]:
            self.epochs.append(found.epoch)

    def _ask(self, at: NodeId) -> None:
        if owner(self.catalog) is not None:
            self.asked.append(move(self.catalog, at))
            self.catalog.transfers.ask(self.asked[-1])

    def _ready(self, _: NodeId) -> None:
        for transfer in self.asked:
            self.catalog.transfers.note_ready(transfer)

    def _fail(self, _: NodeId) -> None:
        for transfer in self.asked:
            self.catalog.transfers.note_failed(transfer, "x")

    def _end(self, _: NodeId) -> None:
        for transfer in self.asked:
            self.catalog.transfers.end(transfer)

    def _read(self, _: NodeId) -> None:
        self.seen = self.catalog.snapshot(ME)

    def _release(self, _: NodeId) -> None:
        """The owner releases what it must, by its own snapshot, if it still must."""
        for name in (NODE1, NODE2, NODE3):
            present = self.catalog.snapshot(ME).leaving(name)
            for fragment, found in self.seen.leaving(name).items():
                if self.catalog.owners.release(fragment, found):
                    assert fragment in present

    def _claim(self, at: NodeId) -> None:
        """A node claims if the fragment falls to it."""
        if self.catalog.snapshot(ME).assigned_to(at):
            self.catalog.owners.claim(TOLLS, MOVING, node(at), NOW)

    def _pause(self, _: NodeId) -> None:
        self.catalog.fragments.set_desired(
            TOLLS, DesiredState.PAUSED, (MOVING,), DesiredState.RUNNING
        )

    def _resume(self, _: NodeId) -> None:
        self.catalog.fragments.set_desired(
            TOLLS, DesiredState.RUNNING, (MOVING,), DesiredState.PAUSED
        )

    def _drain(self, at: NodeId) -> None:
        self.catalog.drains.drain(ME, at, NOW)

    def _undrain(self, at: NodeId) -> None:
        self.catalog.drains.undrain(ME, at)


OFTEN = ("ready", "read", "end", "release")
"""A release by an old reading needs all of them, in this order."""


@given(st.lists(st.sampled_from((*STEPS, *OFTEN * 3)), max_size=25))
@settings(max_examples=examples(300))
def test_whatever_happens_one_node_runs_the_fragment_in_the_end(steps: list[str]) -> None:
    """Epochs only grow, and no transfer outlives the claim that ends it.

    Once the nodes alone go on, the fragment has one owner that keeps it, and nothing is forgotten.
    """
    course = Course()
    for step in steps:
        course.do(step)
    assert course.epochs == sorted(set(course.epochs))
    for step in ("resume", *("read", "release", "claim 1", "claim 2", "claim 3") * 3):
        if step.startswith("claim") and owner(course.catalog) is not None:
            continue
        course.do(step)
    found, there = owner(course.catalog), course.catalog.snapshot(ME)
    assert found is not None
    assert [name for name in (NODE1, NODE2, NODE3) if there.assigned_to(name)] == [found.node]
    assert there.leaving(found.node) == {}
    assert not any(one.is_ready for _, one in there.moving.values())
