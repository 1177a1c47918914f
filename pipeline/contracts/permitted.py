"""Whether a contract permits a task, and which of its terms does not."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pipeline.contracts.load import BYTES_PER_UNIT, Load, Task, Work
from pipeline.contracts.terms import Contract, Kind, Limits
from pipeline.ids import Millis


class Term(StrEnum):
    """A term of a contract that a task does not fit."""

    KIND = "kind"
    DURATION = "duration"
    TASKS = "tasks"
    LIMITS = "limits"
    AVAILABILITY = "clauses.availability"
    DELAY = "clauses.delay"
    REGIONS = "clauses.regions"
    PRIVACY = "clauses.privacy"


@dataclass(frozen=True, slots=True)
class Objection:
    """A term that a task does not fit, and why."""

    term: Term
    why: str


def room_of(limits: Limits) -> Load:
    """The limits of a contract as a load."""
    return Load(
        float(limits.cpu_units), limits.bytes_per_s / BYTES_PER_UNIT, float(limits.memory_bytes)
    )


def objections(contract: Contract, task: Task, used: Load, now_ms: Millis) -> tuple[Objection, ...]:
    """Every term of a contract that forbids to run one more task under it; empty: none does.

    Args:
        contract: the contract.
        task: what would be run.
        used: the load that runs under the contract already.
        now_ms: the time.
    """
    found = [
        *_of_time(contract, now_ms),
        *_of_tasks(contract, task.work),
        *_of_limits(contract, task, used),
    ]
    return (*found, *_of_clauses(contract, task.work))


def permits(contract: Contract, work: Work) -> bool:
    """Whether a contract is about such work at all, whatever the time and the load."""
    return not _of_tasks(contract, work) and not _of_clauses(contract, work)


def _of_time(contract: Contract, now_ms: Millis) -> list[Objection]:
    found = []
    if contract.kind is not Kind.LOAD:
        found.append(Objection(Term.KIND, f"it is a contract about {contract.kind}, not load"))
    if not contract.is_in_force(now_ms):
        why = f"it holds from {contract.from_ms} until {contract.until_ms}, and it is {now_ms}"
        found.append(Objection(Term.DURATION, why))
    return found


def _of_tasks(contract: Contract, work: Work) -> list[Objection]:
    outside = contract.tasks.outside(work.boxes, python=work.python)
    return [Objection(Term.TASKS, f"it is not about {', '.join(outside)}")] if outside else []


def _of_limits(contract: Contract, task: Task, used: Load) -> list[Objection]:
    room = room_of(contract.limits)
    over = [
        name
        for name, most, now, more in zip(Load._fields, room, used, task.load, strict=True)
        if now + more > most
    ]
    return [Objection(Term.LIMITS, f"more {', '.join(over)} than its limits")] if over else []


_PROMISES: Final = (
    (Term.AVAILABILITY, "availability_ms", "an interruption"),
    (Term.DELAY, "delay_ms", "a delay"),
)


def _of_clauses(contract: Contract, work: Work) -> list[Objection]:
    clauses = contract.clauses
    found = []
    for term, name, what in _PROMISES:
        promised, needed = getattr(clauses, name), getattr(work, name)
        if needed is not None and (promised is None or promised > needed):
            said = "none" if promised is None else f"{promised} ms"
            found.append(
                Objection(term, f"the task stands {what} of {needed} ms; promised: {said}")
            )
    if work.regions and not (clauses.regions and clauses.regions <= work.regions):
        said = ", ".join(sorted(clauses.regions)) or "anywhere"
        why = f"the task may run in {', '.join(sorted(work.regions))}; promised: {said}"
        found.append(Objection(Term.REGIONS, why))
    if work.privacy > clauses.privacy:
        least, most = work.privacy.name.lower(), clauses.privacy.name.lower()
        found.append(Objection(Term.PRIVACY, f"its data are {least}; permitted: {most}"))
    return found
