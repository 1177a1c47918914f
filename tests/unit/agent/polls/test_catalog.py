import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest

from pipeline.agent.events import CatalogLost, CatalogRead
from pipeline.agent.polls.catalog import (
    FULL_S,
    GRACE_S,
    HASTE_S,
    OVERDUE_S,
    PAUSE_S,
    REACHED_S,
    RELEASED_S,
)
from pipeline.agent.polls.poll import Ending, start
from pipeline.agent.suspicions import Suspicions
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import NodeRecord, Standby, Transfer
from pipeline.catalog.standbys import Standbys
from pipeline.errors import NewerFormatError, RefusedError
from pipeline.heartbeats.detector import Suspect, Suspicion, Why
from pipeline.ids import Millis, NodeId, ParticipantId, SteadyMillis
from pipeline.lanes.follower_phases import FollowerPhase
from pipeline.names import Znodes
from tests.memory_store import MemoryStore
from tests.unit.agent.polls.support import MOVING, NETWORK, OWNER, World, node_record
from tests.unit.deploy.twins import TwinClock

SILENT = Suspicion(Why.SILENT, 1_100, 1_000, 0, SteadyMillis(0))


def test_a_catalog_event_is_sent_when_it_changed() -> None:
    """A poll without a change costs one small read and sends nothing."""
    world = World()
    world.poll.read()
    world.poll.read()
    assert len(world.events) == 1
    world.deploy()
    world.poll.read()
    assert world.assigned() == ["moving"]


def test_a_fragment_of_another_live_node_is_not_ours() -> None:
    """As soon as that node is gone, it is."""
    world = World()
    world.deploy()
    other = MemoryStore(world.tree)
    theirs = Catalog(other, Znodes(""))
    theirs.nodes.register(node_record("there"))
    theirs.owners.claim(NETWORK, MOVING, node_record("there"), Millis(0))
    world.poll.read()
    assert world.assigned() == []
    owner = theirs.owners.get(NETWORK, MOVING)
    assert owner is not None
    assert world.suspicions.noticed(owner) is None
    other.close()
    world.poll.read()
    assert world.assigned() == ["moving"]
    noticed = world.suspicions.noticed(owner)
    assert noticed is not None
    assert noticed.by == "session"


def test_a_session_in_doubt_is_one_event_and_the_catalog_is_read_again() -> None:
    """While it is in doubt no decision may use the earlier read."""
    world = World()
    world.poll.read()
    world.store.suspend()
    world.poll.read()
    world.poll.read()
    world.store.resume()
    world.poll.read()
    assert [type(event) for event in world.events] == [CatalogRead, CatalogLost, CatalogRead]


def test_a_node_registers_again_after_its_session_expired() -> None:
    """Otherwise it would run on while the others treat it as dead."""
    world = World()
    world.poll.read()
    world.store.expire()
    world.store.resume()
    assert world.catalog.nodes.all() == ()
    world.poll.read()
    assert [record.node for record in world.catalog.nodes.all()] == ["here"]


def test_a_catalog_of_a_newer_version_ends_the_node() -> None:
    """With a message and without the desired state: it claims nothing any more."""
    world = World()
    world.poll.read()
    stop = threading.Event()
    ending = Ending(stop)
    world.store.expire()
    world.store.resume()
    Catalog(MemoryStore(world.tree), Znodes(""), newest=2).format.raise_to_newest()
    start(world.poll, "catalog", stop, ending).join(10)
    assert stop.is_set()
    with pytest.raises(NewerFormatError, match="format 2, this one reads up to 1"):
        ending.check()
    assert [type(event) for event in world.events] == [CatalogRead, CatalogLost]
    assert MemoryStore(world.tree).children(Znodes("").nodes(ParticipantId("local"))) == ()


def test_a_change_during_a_read_is_read_in_the_next_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    """The revision was read first, so it differs by then."""
    world = World()
    read = world.store.children_all

    def meanwhile(paths: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        found = read(paths)
        monkeypatch.undo()
        world.deploy()
        return found

    monkeypatch.setattr(world.store, "children_all", meanwhile)
    world.poll.read()
    assert world.assigned() == []
    world.poll.read()
    assert world.assigned() == ["moving"]


def test_moves_whose_time_has_passed_are_ended() -> None:
    """By whichever node reads the catalog: the target may hang, or be of an earlier version.

    The time passes by the clock of the node, since it has read of the move: the clocks of the
    command and of the node are not compared.
    """
    world = World()
    world.poll.clock = clock = TwinClock()
    world.deploy()
    epoch = world.catalog.owners.claim(NETWORK, MOVING, node_record("here"), Millis(0)).epoch
    (one,) = world.catalog.snapshot(NETWORK.participant).fragments
    there = node_record("there")
    for asked_ms in (0, clock.now_ms() + 300_000):
        transfer = Transfer(
            NETWORK,
            one.network.life,
            MOVING,
            one.record.version,
            node_record("here").node,
            epoch,
            there.node,
            there.started_at_ms,
            Millis(asked_ms),
            Millis(asked_ms + 60_000),
            is_ready=False,
            problem="",
        )
        world.catalog.transfers.ask(transfer)
        world.poll.read()
        for after_s, left in ((60 + GRACE_S, 1), (FULL_S + 0.1, 0)):
            clock.sleep(after_s)
            world.poll.read()
            assert len(world.catalog.transfers.of(NETWORK.participant)) == left


def test_a_target_that_does_not_claim_what_was_released_loses_its_move() -> None:
    """It may be unable to: then the placement decides, long before the time of the move ends."""
    world = World()
    world.poll.clock = clock = TwinClock()
    world.deploy()
    here, there, catalog = node_record("here"), node_record("there"), world.catalog
    catalog.nodes.register(there)
    epoch = catalog.owners.claim(NETWORK, MOVING, here, Millis(0)).epoch
    (one,) = catalog.snapshot(NETWORK.participant).fragments
    transfer = Transfer(
        NETWORK,
        one.network.life,
        MOVING,
        one.record.version,
        here.node,
        epoch,
        there.node,
        there.started_at_ms,
        Millis(0),
        Millis(300_000),
        is_ready=False,
        problem="",
    )
    catalog.transfers.ask(transfer)
    catalog.transfers.note_ready(transfer)
    clock.sleep(100)
    world.poll.read()
    seen = catalog.snapshot(NETWORK.participant).leaving(here.node)[one.id]
    assert catalog.owners.release(one.id, seen)
    world.poll.read()
    for after_s, left in ((RELEASED_S, 1), (HASTE_S + 0.1, 0)):
        clock.sleep(after_s)
        world.poll.read()
        assert len(catalog.transfers.of(NETWORK.participant)) == left


def test_a_suspected_node_counts_as_down_at_once() -> None:
    """The catalog is read again, and so it is when the suspicion ends."""
    world = World()
    world.deploy()
    theirs = Catalog(MemoryStore(world.tree), Znodes(""))
    theirs.nodes.register(node_record("there"))
    theirs.owners.claim(NETWORK, MOVING, node_record("there"), Millis(0))
    world.poll.read()
    there = node_record("there")
    world.suspicions.note({Suspect(there.node, there.started_at_ms): SILENT})
    world.poll.read()
    assert world.assigned() == ["moving"]
    world.suspicions.note({Suspect(there.node, Millis(there.started_at_ms - 1)): SILENT})
    world.poll.read()
    assert world.assigned() == []


def test_a_node_reports_what_it_follows_as_a_secondary() -> None:
    """Once, and again in another session."""
    world, here = World(), NodeId("here")
    standby = Standby(NETWORK, MOVING, FollowerPhase.LEVEL, "", Millis(0))
    world.standbys.append(standby)
    world.poll.read()
    assert world.catalog.snapshot(OWNER).standbys == {here: (standby,)}
    world.catalog.standbys.report(node_record("here"), ())
    world.poll.read()
    assert world.catalog.snapshot(OWNER).standbys == {here: ()}
    world.store.expire()
    world.store.resume()
    assert world.catalog.snapshot(OWNER).standbys == {}
    world.poll.read()
    assert world.catalog.snapshot(OWNER).standbys == {here: (standby,)}
    world.standbys.clear()
    world.poll.read()
    assert world.catalog.snapshot(OWNER).standbys == {here: ()}


def test_how_far_a_state_is_is_reported_once_in_a_while() -> None:
    """A change of anything else is reported at once."""
    world, here = World(), NodeId("here")
    world.poll.clock = clock = TwinClock()
    standby = Standby(NETWORK, MOVING, FollowerPhase.LEVEL, "", Millis(0))
    world.standbys.append(standby)
    world.poll.read()
    farther = replace(standby, reached_ms=Millis(7), state_bytes=5)
    world.standbys[:] = [farther]
    world.poll.read()
    assert world.catalog.snapshot(OWNER).standbys == {here: (standby,)}
    clock.sleep(REACHED_S)
    world.poll.read()
    assert world.catalog.snapshot(OWNER).standbys == {here: (farther,)}
    other = replace(farther, phase=FollowerPhase.CATCHING_UP)
    world.standbys[:] = [other]
    world.poll.read()
    assert world.catalog.snapshot(OWNER).standbys == {here: (other,)}


def test_a_suspicion_that_lasts_is_overdue() -> None:
    """Nodes may disagree on who takes the fragments over. Meanwhile the catalog is read often."""
    world = World()
    world.deploy()
    theirs = Catalog(MemoryStore(world.tree), Znodes(""))
    there = node_record("there")
    theirs.nodes.register(there)
    theirs.owners.claim(NETWORK, MOVING, there, Millis(0))
    clock = TwinClock()
    world.suspicions = Suspicions(clock)
    world.poll.clock, world.poll.suspicions = clock, world.suspicions

    def overdue() -> list[frozenset[NodeId]]:
        world.suspicions.note({Suspect(there.node, there.started_at_ms): SILENT})
        world.poll.read()
        found = [one.snapshot.overdue for one in world.events if isinstance(one, CatalogRead)]
        world.events.clear()
        return found

    assert overdue() == [frozenset()]
    assert overdue() == []
    clock.sleep(HASTE_S + 0.1)
    assert overdue() == [frozenset()]
    clock.sleep(OVERDUE_S)
    assert overdue() == [frozenset({there.node})]


def test_a_report_that_fails_does_not_hide_the_catalog() -> None:
    """It is written again later."""
    world = World()
    standby = Standby(NETWORK, MOVING, FollowerPhase.LEVEL, "", Millis(0))
    report, world.catalog.standbys = world.catalog.standbys, Refusing()
    world.standbys.append(standby)
    for _ in range(2):
        assert world.poll.read() == PAUSE_S
    assert [type(event) for event in world.events] == [CatalogRead]
    world.catalog.standbys = report
    world.poll.read()
    assert world.catalog.snapshot(OWNER).standbys == {NodeId("here"): (standby,)}


class Refusing(Standbys):
    """Standbys that may not be written."""

    def __init__(self) -> None:
        """They need no store."""

    def report(self, node: NodeRecord, standbys: tuple[Standby, ...]) -> None:
        """Refuse it."""
        del standbys
        raise RefusedError("no right to write", place=f"node {node.node}")
