"""Charging of CPU time: nothing is lost or charged twice, and each fragment gets its part."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BrokenInvariantError
from pipeline.ids import (
    FragmentId,
    FragmentName,
    NetworkId,
    NetworkName,
    ParticipantId,
    SteadyMillis,
)
from pipeline.metering.accounting import Account, Charge, shares
from pipeline.metering.readings import LaneUse, ProcessTimes, Reading

NETWORK = NetworkId(ParticipantId("local"), NetworkName("net"))
A, B, C = (FragmentId(NETWORK, FragmentName(name)) for name in "abc")
NOTHING = ProcessTimes(0, 0, 0, 0, 0)
TIMES = st.integers(0, 10**12)


def begun(*, remote_tasks: bool = False) -> Account:
    """An account before anything was computed."""
    return Account(Reading(SteadyMillis(0), NOTHING, remote_tasks=remote_tasks))


def reading(
    processes: ProcessTimes, lanes: Mapping[FragmentId, LaneUse], *, remote_tasks: bool = False
) -> Reading:
    """A reading ten seconds later."""
    return Reading(SteadyMillis(10_000), processes, lanes, remote_tasks)


def test_measured_time_is_charged_and_common_time_is_shared_by_it() -> None:
    """Java's rest by planning and writing, clients by writing; the agent is overhead."""
    lanes = {A: LaneUse(10, 50, 30), B: LaneUse(20, 20, 10)}
    found = begun().after(reading(ProcessTimes(100, 20, 150, 0, 7), lanes))
    assert found.charges == {A: Charge(10, 50, 30, 0, 29 + 15), B: Charge(20, 20, 10, 0, 21 + 5)}
    assert found.overhead_ns == 100 - 20 - 40 + 7


def test_python_processes_are_charged_to_those_that_have_functions() -> None:
    """In proportion to their tasks; what others compute does not count."""
    lanes = {
        A: LaneUse(0, 30, 0, uses_python=True),
        B: LaneUse(0, 10, 0, uses_python=True),
        C: LaneUse(0, 960, 0),
    }
    found = begun().after(reading(ProcessTimes(0, 0, 1_000, 400, 0), lanes))
    assert [found.charges[one].functions_ns for one in (A, B, C)] == [300, 100, 0]


def test_an_idle_node_charges_nobody() -> None:
    """The rest of Java is overhead when no fragment has caused it."""
    found = begun().after(reading(ProcessTimes(5, 1, 40, 3, 2), {A: LaneUse()}))
    assert found.charges == {A: Charge()}
    assert found.overhead_ns == 50


def test_tasks_that_end_later_than_they_computed_are_not_charged_twice() -> None:
    """The rest of the next increase is less by what was charged beyond the last one."""
    first = begun().after(reading(ProcessTimes(0, 0, 60, 0, 0), {A: LaneUse(1, 99, 0)}))
    assert (first.charges[A], first.debt_ns) == (Charge(1, 99, 0), 40)
    again = first.after(reading(ProcessTimes(0, 0, 130, 0, 0), {A: LaneUse(2, 108, 0)}))
    assert (again.charges[A], again.debt_ns) == (Charge(2, 108, 0, 0, 20), 0)


def test_tasks_on_a_cluster_are_charged_beside_the_processes_of_the_node() -> None:
    """Their time is not part of Java's on the node."""
    lanes = {A: LaneUse(30, 500, 0)}
    found = begun(remote_tasks=True).after(
        reading(ProcessTimes(0, 0, 50, 0, 0), lanes, remote_tasks=True)
    )
    assert found.charges[A] == Charge(30, 500, 0, 0, 20)


@pytest.mark.parametrize("less", [ProcessTimes(9, 0, 10, 0, 0), ProcessTimes(10, 0, 9, 0, 0)])
def test_a_counter_that_decreases_is_refused(less: ProcessTimes) -> None:
    """Of a process, and of a fragment."""
    account = begun().after(reading(ProcessTimes(10, 0, 10, 0, 0), {A: LaneUse(5, 0, 0)}))
    with pytest.raises(BrokenInvariantError, match="a process of the node has decreased by 1 ns"):
        account.after(reading(less, {A: LaneUse(5, 0, 0)}))
    with pytest.raises(BrokenInvariantError, match=r"fragment net\.a has decreased by 2 ns"):
        account.after(reading(ProcessTimes(10, 0, 10, 0, 0), {A: LaneUse(3, 0, 0)}))


uses = st.builds(LaneUse, TIMES, TIMES, TIMES, st.booleans())
increases = st.lists(
    st.tuples(
        st.builds(ProcessTimes, TIMES, st.just(0), TIMES, TIMES, TIMES),
        st.integers(0, 100),
        st.dictionaries(st.sampled_from([A, B, C]), uses),
    ),
    max_size=5,
)


@given(increases)
def test_charges_and_overhead_are_the_time_of_the_processes(
    steps: list[tuple[ProcessTimes, int, dict[FragmentId, LaneUse]]],
) -> None:
    """And the debt, whatever is read in whatever order; no part is negative."""
    account = begun()
    for grown, percent, lanes in steps:
        last = account.reading
        grown_clients = replace(grown, clients_ns=grown.node_ns * percent // 100)
        processes = ProcessTimes(*_sums(last.processes, grown_clients))
        now = dict(last.lanes)
        for at, use in lanes.items():
            before = now.get(at, LaneUse())
            now[at] = LaneUse(
                before.planning_ns + use.planning_ns,
                before.tasks_ns + use.tasks_ns,
                before.writing_ns + use.writing_ns,
                use.uses_python,
            )
        account = account.after(Reading(SteadyMillis(last.at_ms + 10), processes, now))
        for charge in account.charges.values():
            assert min(charge.functions_ns, charge.shared_ns) >= 0
    charged_ns = sum(one.total_ns for one in account.charges.values())
    total_ns = account.reading.processes.total_ns
    assert charged_ns + account.overhead_ns == total_ns + account.debt_ns


def _sums(one: ProcessTimes, other: ProcessTimes) -> tuple[int, ...]:
    names = ("node_ns", "clients_ns", "java_ns", "functions_ns", "other_ns")
    return tuple(getattr(one, name) + getattr(other, name) for name in names)


@given(st.integers(0, 10**15), st.dictionaries(st.sampled_from([A, B, C]), TIMES))
def test_shares_are_the_whole(whole: int, weights: dict[FragmentId, int]) -> None:
    """Unless nothing weighs anything; each within one part per weight of its proportion."""
    found = shares(whole, weights)
    if not any(weights.values()):
        assert found == {}
        return
    assert sum(found.values()) == whole
    for one, share in found.items():
        assert abs(share - whole * weights[one] / sum(weights.values())) <= max(3, whole / 1e12)
