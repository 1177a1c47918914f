"""Takeovers of simulated nodes with real detectors: false suspicions, and asymmetric cuts."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.heartbeats.detector import DOUBLED_MAX, RECOVERY_MS, Suspect
from pipeline.ids import NodeId
from tests.profiles import examples
from tests.unit.heartbeats.takeover_simulation import LIMIT_MS, SESSION_S, Machine, Simulation

NAMES = ("a", "b", "c")
CALM_S = 25.0
QUICK_S = 4.0
"""A takeover by heartbeats and its claim. Own heartbeats that are late are read together, and count
once then, so that it takes longer than the limit."""
PAUSE_MAX_S = SESSION_S + (2 * LIMIT_MS * 2**DOUBLED_MAX + RECOVERY_MS) / 1_000 + 2 * QUICK_S
"""With a limit that was doubled as often as possible."""


@pytest.fixture(params=range(2))
def simulation(request: pytest.FixtureRequest) -> Simulation:
    """Three nodes, one of which writes."""
    found = Simulation(Random(request.param), *NAMES)
    found.run(3.0)
    assert found.writer is not None
    return found


def _of(simulation: Simulation) -> Machine:
    assert simulation.writer is not None
    return simulation.machines[str(simulation.writer)]


def _changes(simulation: Simulation) -> int:
    return len(simulation.claims) - 1


def test_nodes_that_work_suspect_nobody(simulation: Simulation) -> None:
    """Their heartbeats are late, and nothing changes."""
    simulation.run(30.0)
    assert _changes(simulation) == 0
    assert not any(one.suspected for one in simulation.machines.values())


def _cut_from_kafka(machine: Machine) -> None:
    machine.kafka = False


def _cut_from_both(machine: Machine) -> None:
    machine.kafka = machine.zookeeper = False


def _cut_from_zookeeper(machine: Machine) -> None:
    machine.zookeeper = False


@pytest.mark.parametrize("cut", [_cut_from_kafka, _cut_from_both])
def test_an_owner_without_kafka_is_replaced_at_once(
    simulation: Simulation, cut: Callable[[Machine], None]
) -> None:
    """By its silence. It suspects nobody itself, and is fenced when it is back."""
    old, since_s = _of(simulation), simulation.clock.passed_s
    cut(old)
    simulation.run(QUICK_S)
    assert simulation.writer not in {None, old.name}
    assert max(simulation.pauses_s(since_s)) <= QUICK_S
    simulation.run(30.0)
    assert not old.suspected
    old.kafka = old.zookeeper = True
    simulation.run(CALM_S)
    assert old.lane is None
    assert _changes(simulation) == 1
    assert not any(one.suspected for one in simulation.machines.values())


def test_an_owner_without_zookeeper_writes_until_its_session_has_ended(
    simulation: Simulation,
) -> None:
    """Its heartbeats come, so that nobody suspects it before."""
    old, since_s = _of(simulation), simulation.clock.passed_s
    _cut_from_zookeeper(old)
    simulation.run(SESSION_S - 1.0)
    assert simulation.writer == old.name
    simulation.run(1.0 + QUICK_S)
    assert simulation.writer not in {None, old.name}
    assert max(simulation.pauses_s(since_s)) < 1.0
    old.zookeeper = True
    simulation.run(CALM_S)
    assert _changes(simulation) == 1


def test_a_secondary_without_kafka_claims_nothing(simulation: Simulation) -> None:
    """It reads no own heartbeat, and so knows nothing of others."""
    owner = _of(simulation)
    other = next(one for one in simulation.machines.values() if one is not owner)
    other.kafka = False
    simulation.run(30.0)
    assert not other.suspected
    other.kafka = True
    simulation.run(CALM_S)
    assert simulation.writer == owner.name
    assert _changes(simulation) == 0


def test_a_suspended_owner_is_fenced_when_it_wakes_up(simulation: Simulation) -> None:
    """Its suspicion was false: the limit of it is doubled from then on."""
    old = _of(simulation)
    old.suspended = True
    simulation.run(QUICK_S)
    new = _of(simulation)
    assert new is not old
    old.suspended = False
    simulation.run(CALM_S)
    assert old.lane is None
    assert _of(simulation) is new
    old.suspended = True
    simulation.run(LIMIT_MS * 1.5 / 1_000)
    assert not new.suspected


def test_a_hanging_agent_loses_its_fragment(simulation: Simulation) -> None:
    """Its process sends heartbeats, and its lane writes until it is fenced."""
    old = _of(simulation)
    old.hangs_since_s = simulation.clock.passed_s
    simulation.run(8.0)
    assert simulation.writer == old.name
    simulation.run(QUICK_S + 2.5)
    assert simulation.writer not in {None, old.name}


def test_a_killed_owner_is_replaced_and_comes_back_as_another_life(simulation: Simulation) -> None:
    """Within the delays of its last heartbeat; the suspicion is of the life that has ended."""
    old, since_s = _of(simulation), simulation.clock.passed_s
    simulation.kill(str(old.name))
    simulation.run(QUICK_S)
    assert max(simulation.pauses_s(since_s)) <= 1.5
    simulation.start(str(old.name))
    simulation.run(CALM_S)
    assert _changes(simulation) == 1
    assert not any(one.suspected for one in simulation.machines.values())


@pytest.mark.parametrize("seconds", [1.0, 5.0, 20.0])
def test_nodes_that_believe_each_other_dead_leave_one_owner(
    simulation: Simulation, seconds: float
) -> None:
    """They claim in turn, each fences the one before, and none writes after that one."""
    first, second, _ = simulation.machines.values()
    for one, other in ((first, second), (second, first)):
        one.believed = frozenset({Suspect(other.name, other.record.started_at_ms)})
    simulation.run(seconds)
    first.believed = second.believed = frozenset()
    changes = _changes(simulation)
    simulation.run(CALM_S)
    assert simulation.writer is not None
    assert _changes(simulation) <= changes + 1
    _check_epochs(simulation)


@pytest.mark.parametrize("after_s", [0.0, 0.1, 0.2, 0.4, 0.8])
@pytest.mark.parametrize("secondaries", [1, 2])
def test_a_mode_that_changes_during_a_takeover_makes_no_second_one(
    after_s: float, secondaries: int
) -> None:
    """Before the loss is noticed, before the claim, before it has fenced, or just afterwards."""
    simulation = Simulation(Random(3), *NAMES)
    simulation.run(3.0)
    old = _of(simulation)
    simulation.kill(str(old.name))
    simulation.run(after_s)
    simulation.change_mode(secondaries)
    simulation.run(QUICK_S)
    assert simulation.writer not in {None, old.name}
    simulation.start(str(old.name))
    simulation.run(CALM_S)
    assert _changes(simulation) == 1
    _check_epochs(simulation)


faults = st.lists(
    st.tuples(
        st.sampled_from(["kafka", "zookeeper", "both", "suspend", "hang", "kill", "heal"]),
        st.sampled_from(NAMES[:2]),
        st.sampled_from([0.3, 1.1, 4.0, 12.0]),
    ),
    max_size=10,
)


@given(faults, st.integers(0, 1_000))
@settings(max_examples=examples(30))
def test_whatever_fails_one_node_writes_and_nothing_oscillates(
    drawn: list[tuple[str, str, float]], seed: int
) -> None:
    """The third node always works, so that there is one to go on: the pause is bounded."""
    simulation = Simulation(Random(seed), *NAMES)
    simulation.run(3.0)
    for fault, name, seconds in drawn:
        _strike(simulation, fault, name)
        simulation.run(seconds)
        _check_blind(simulation)
    for name in NAMES[:2]:
        _strike(simulation, "heal", name)
    assert max(simulation.pauses_s(0.0)) <= PAUSE_MAX_S
    simulation.run(PAUSE_MAX_S)
    changes, since_s = _changes(simulation), simulation.clock.passed_s
    simulation.run(CALM_S)
    assert _changes(simulation) == changes <= 3 * len(drawn) + 3
    assert max(simulation.pauses_s(since_s)) < 1.0
    assert not any(one.suspected for one in simulation.machines.values())
    assert [one.lane for one in simulation.machines.values()].count(None) == len(NAMES) - 1
    _check_epochs(simulation)


def _strike(simulation: Simulation, fault: str, name: str) -> None:
    machine = simulation.machines[name]
    if fault == "kill" and not machine.killed:
        simulation.kill(name)
    elif fault == "heal" and machine.killed:
        simulation.start(name)
    elif fault == "heal":
        machine.kafka = machine.zookeeper = True
        machine.suspended, machine.hangs_since_s = False, None
    elif fault == "suspend":
        machine.suspended = True
    elif fault == "hang" and machine.hangs_since_s is None:
        machine.hangs_since_s = simulation.clock.passed_s
    machine.kafka = machine.kafka and fault not in {"kafka", "both"}
    machine.zookeeper = machine.zookeeper and fault not in {"zookeeper", "both"}


def _check_blind(simulation: Simulation) -> None:
    """A node that reads no own heartbeat suspects nobody."""
    for machine in simulation.machines.values():
        own = [
            one.sent_ms
            for one in simulation.log[: machine.position]
            if (one.node, one.life) == (machine.name, machine.record.started_at_ms)
        ]
        young_ms = simulation.clock.passed_s * 1_000 - LIMIT_MS
        if machine.runs and (not own or own[-1] <= young_ms):
            assert not machine.suspected


def _check_epochs(simulation: Simulation) -> None:
    """No batch of an earlier epoch was taken after one of a later one; each epoch has one node."""
    epochs = [epoch for _, _, epoch in simulation.accepted]
    assert epochs == sorted(epochs)
    writers: dict[int, NodeId] = {}
    for _, by, epoch in simulation.accepted:
        assert writers.setdefault(epoch, by) == by
