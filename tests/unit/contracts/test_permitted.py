"""Terms that forbid a task, by name."""

from dataclasses import replace

import pytest

from pipeline.contracts.load import NO_LOAD, Load, Task, Work
from pipeline.contracts.permitted import Term, objections
from pipeline.contracts.terms import Clauses, Kind, PartyId, Privacy, TaskId
from pipeline.ids import Millis
from tests.unit.contracts.terms import CONTRACT

NOW = Millis(1_500)
TASK = Task(TaskId("alice.1"), PartyId("alice"), Load(10.0, 10.0, 1e6), Work(frozenset({"filter"})))
PROMISES = replace(
    CONTRACT, clauses=Clauses(60_000, 500, frozenset({"eu-1", "eu-2"}), Privacy.INTERNAL)
)


def test_a_fitting_task_is_permitted() -> None:
    """Also with all promises needed."""
    needs = Work(
        frozenset({"filter"}), availability_ms=60_000, delay_ms=500,
        regions=frozenset({"eu-1", "eu-2", "eu-3"}), privacy=Privacy.INTERNAL,
    )  # fmt: skip
    assert objections(CONTRACT, TASK, NO_LOAD, NOW) == ()
    assert objections(PROMISES, replace(TASK, work=needs), NO_LOAD, NOW) == ()


@pytest.mark.parametrize(
    ("work", "term"),
    [
        (Work(frozenset({"join"})), Term.TASKS),
        (Work(python=True), Term.TASKS),
        (Work(availability_ms=59_999), Term.AVAILABILITY),
        (Work(delay_ms=499), Term.DELAY),
        (Work(regions=frozenset({"eu-1"})), Term.REGIONS),
        (Work(privacy=Privacy.PERSONAL), Term.PRIVACY),
    ],
)
def test_the_clause_is_named(work: Work, term: Term) -> None:
    """That a task does not fit."""
    (found,) = objections(PROMISES, replace(TASK, work=work), NO_LOAD, NOW)
    assert found.term is term
    assert found.why


def test_a_missing_promise_is_no_promise() -> None:
    """Each need of a task counts against a contract without clauses."""
    work = Work(availability_ms=1, delay_ms=1, regions=frozenset({"eu"}))
    found = objections(CONTRACT, replace(TASK, work=work), NO_LOAD, NOW)
    assert [one.term for one in found] == [Term.AVAILABILITY, Term.DELAY, Term.REGIONS]


def test_limits_count_what_runs_already() -> None:
    """Of each resource."""
    assert objections(CONTRACT, TASK, Load(40.0, 100.0, 0.0), NOW) == ()
    (found,) = objections(CONTRACT, TASK, Load(41.0, 200.0, 0.0), NOW)
    assert (found.term, found.why) == (Term.LIMITS, "more cpu, bytes than its limits")


def test_duration_and_kind() -> None:
    """A contract that is over, and one about something else."""
    other = replace(CONTRACT, kind=Kind.CONTENT)
    found = objections(other, TASK, NO_LOAD, Millis(2_000))
    assert [one.term for one in found] == [Term.KIND, Term.DURATION]
