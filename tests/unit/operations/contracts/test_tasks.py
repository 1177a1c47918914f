"""Fragments as tasks of a contract, and the terms that forbid one."""

from dataclasses import replace

import pytest

from pipeline.catalog.load_records import FragmentLoad
from pipeline.contracts.load import NO_LOAD, Load
from pipeline.contracts.permitted import Term
from pipeline.contracts.terms import Clauses, Limits, PartyId, Privacy, TaskId, TaskSet
from pipeline.errors import RefusedError
from pipeline.ids import FragmentName, Millis, NetworkId, NetworkName, ParticipantId
from pipeline.labels import parse_selector
from pipeline.network.model import Box
from pipeline.operations.contracts.tasks import Needs, check_permitted, refusals, task_of
from pipeline.planner.plan import Fragment
from pipeline.planner.planner import plan
from tests.unit.contracts.parties import DAY_MS, NOW, active, proposed, terms
from tests.unit.planner.networks import (
    aggregated,
    expression,
    external,
    filtered,
    network,
    python,
    routed,
)

ALICE = ParticipantId("alice")
CARS = external("cars")
PUBLIC = Needs(Privacy.PUBLIC)
LOAD = FragmentLoad(
    NetworkId(ALICE, NetworkName("net")),
    FragmentName("fast"),
    planning=4_000,
    tasks=10_000,
    writing=5_000,
    functions=0,
    shared=1_000,
    records_in=100,
    records_out=50,
    bytes_in=150_000,
    bytes_out=50_000,
    charged=9_000,
)
"""20 load units of the processor, and 20 of bytes."""
AT = Millis(NOW + 2)


def fragment(*boxes: Box) -> Fragment:
    """The fragment of a network that consists of these boxes."""
    (found,) = plan(network((CARS,), boxes), ALICE).fragments
    return found


FAST = fragment(filtered("fast", CARS, "`at` > 0"))
WINDOWS = fragment(aggregated("counts", CARS, {"at": "`at`"}, {"n": ("count", "`at`")}))


def forbidding(
    one: Fragment, needs: Needs = PUBLIC, used: Load = NO_LOAD, **changes: object
) -> list[Term]:
    """The terms of a contract that forbid a fragment."""
    contract = active(terms(**changes))
    return [found.term for found in refusals(contract, one, task_of(one, LOAD, needs), used, AT)]


def test_a_task_has_the_metered_load_and_the_boxes_of_its_fragment() -> None:
    """Load units of the processor, of bytes both ways, and the limit of its state."""
    task = task_of(replace(WINDOWS, state_limit_bytes=1 << 20), LOAD, PUBLIC)
    assert (task.id, task.origin) == (TaskId("net.counts"), PartyId(ALICE))
    assert task.load == Load(20.0, 20.0, float(1 << 20))
    assert (task.work.boxes, task.work.python) == (frozenset({"aggregate"}), False)


def test_a_branch_is_of_its_route_and_a_python_box_runs_code() -> None:
    """Kinds are those that a document names."""
    route, branches = routed("lanes", CARS, {"left": expression("`at` > 1")})
    sent = fragment(route, *branches)
    assert task_of(sent, LOAD, PUBLIC).work.boxes == {"route"}
    called = task_of(fragment(python("scored", CARS)), LOAD, PUBLIC).work
    assert (called.boxes, called.python) == (frozenset({"python"}), True)


def test_a_contract_permits_what_none_of_its_terms_forbids() -> None:
    """And nothing is raised then."""
    assert forbidding(FAST) == []
    check_permitted(active(), FAST, task_of(FAST, LOAD, PUBLIC), AT)


def test_each_term_that_forbids_a_fragment_is_named() -> None:
    """Tasks, limits with what runs already, clauses."""
    assert forbidding(WINDOWS, tasks=TaskSet(frozenset({"filter"})))[0] is Term.TASKS
    assert forbidding(FAST, limits=Limits(19, 2_000_000, 1)) == [Term.LIMITS]
    assert forbidding(FAST, limits=Limits(50, 199_999, 1)) == [Term.LIMITS]
    assert forbidding(FAST, used=Load(30.5, 0.0, 0.0)) == [Term.LIMITS]
    assert forbidding(FAST, Needs(Privacy.PERSONAL)) == [Term.PRIVACY]
    needs = Needs(Privacy.PUBLIC, availability_ms=10_000, delay_ms=3_000)
    assert forbidding(FAST, needs) == [Term.AVAILABILITY, Term.DELAY]
    assert forbidding(FAST, needs, clauses=Clauses(10_000, 3_000)) == []


def test_a_state_without_a_limit_is_not_sent() -> None:
    """Its memory cannot be compared with the limits."""
    assert forbidding(WINDOWS) == [Term.LIMITS]
    assert forbidding(replace(WINDOWS, state_limit_bytes=1 << 29)) == []
    assert forbidding(replace(WINDOWS, state_limit_bytes=1 << 31)) == [Term.LIMITS]


def test_a_placement_in_regions_needs_a_promise_of_these() -> None:
    """Those that it excludes are no regions where it may run."""
    placed = replace(FAST, nodes=parse_selector("region=eu|us,region!=us,zone=a"))
    assert task_of(placed, LOAD, PUBLIC).work.regions == {"eu", "us"}
    assert forbidding(placed) == [Term.REGIONS]
    assert forbidding(placed, clauses=Clauses(regions=frozenset({"eu"}))) == []


@pytest.mark.parametrize("at_ms", [NOW - 1, NOW + 30 * DAY_MS])
def test_outside_of_its_duration_a_contract_permits_nothing(at_ms: int) -> None:
    """Neither before its begin nor from its end on."""
    task = task_of(FAST, LOAD, PUBLIC)
    found = refusals(active(), FAST, task, NO_LOAD, Millis(at_ms))
    assert [one.term for one in found] == [Term.DURATION]


def test_who_sells_and_who_has_not_agreed_is_refused() -> None:
    """Load goes from the buyer to the seller only, under terms that both have signed."""
    bobs = replace(task_of(FAST, LOAD, PUBLIC), origin=terms().contract.seller)
    with pytest.raises(RefusedError, match="bob is the seller"):
        refusals(active(), FAST, bobs, NO_LOAD, AT)
    with pytest.raises(RefusedError, match="it is proposed, not agreed on"):
        refusals(proposed(), FAST, bobs, NO_LOAD, AT)


def test_the_error_names_all_terms_and_reasons() -> None:
    """In one line."""
    contract = active(terms(tasks=TaskSet(frozenset({"join"}))))
    task = task_of(FAST, LOAD, Needs(Privacy.INTERNAL))
    with pytest.raises(RefusedError) as caught:
        check_permitted(contract, FAST, task, AT)
    assert caught.value.message == (
        "contract load-2027 does not permit it, by its tasks, clauses.privacy: tasks: it is not "
        "about filter; clauses.privacy: its data are internal; permitted: public"
    )
