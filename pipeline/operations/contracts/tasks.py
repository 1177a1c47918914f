"""Fragments as tasks of a contract: their work, their metered load, and what a contract permits.

Pure.
"""

from dataclasses import dataclass
from typing import Final

from pipeline.catalog.load_records import FragmentLoad
from pipeline.contracts.load import BYTES_PER_UNIT, NO_LOAD, Load, Task, Work
from pipeline.contracts.negotiation.chain import Negotiation
from pipeline.contracts.permitted import Objection, Term, objections
from pipeline.contracts.terms import PartyId, Privacy, TaskId
from pipeline.errors import RefusedError
from pipeline.ids import Millis
from pipeline.planner.plan import Fragment

REGION: Final = "region"
"""The label of nodes whose values in a placement are the regions of a fragment."""
_PARTS: Final = {"branch": "route"}
"""Kinds of boxes that are created with one of another kind, which a document names."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a user demands for a fragment beyond its document.

    Args:
        privacy: of the data that it reads.
        availability_ms: longest interruption that it tolerates; None: any.
        delay_ms: longest delay of its results that it tolerates; None: any.
    """

    privacy: Privacy
    availability_ms: int | None = None
    delay_ms: int | None = None


def task_of(fragment: Fragment, load: FragmentLoad, needs: Needs) -> Task:
    """A fragment as a task.

    Its memory is the limit of its state; of one without a limit it is not known, see `refusals`.
    """
    network = fragment.names.network
    bytes_per_s = load.bytes_in + load.bytes_out
    kinds = frozenset(_PARTS.get(box.kind, box.kind) for box in fragment.boxes)
    work = Work(
        boxes=kinds,
        python="python" in kinds,
        availability_ms=needs.availability_ms,
        delay_ms=needs.delay_ms,
        regions=_regions(fragment),
        privacy=needs.privacy,
    )
    state_bytes = float(fragment.state_limit_bytes or 0)
    return Task(
        TaskId(f"{network.name}.{fragment.name}"),
        PartyId(network.participant),
        Load(load.total / 1_000, bytes_per_s / BYTES_PER_UNIT, state_bytes),
        work,
    )


def refusals(
    contract: Negotiation, fragment: Fragment, task: Task, used: Load, now_ms: Millis
) -> tuple[Objection, ...]:
    """Every term of a contract that forbids to send a fragment under it; empty: none does.

    Args:
        contract: the contract, with all its documents.
        fragment: which one.
        task: the same as a task.
        used: the load that runs under the contract already.
        now_ms: the time.

    Raises:
        RefusedError: the participant of the fragment is not the buyer.
    """
    place = f"contract {contract.contract}"
    if not contract.agreed:
        raise RefusedError(f"it is {contract.at(now_ms).state.value}, not agreed on", place=place)
    agreement = contract.in_force(now_ms)
    if agreement is None:
        state = contract.at(now_ms).state.value
        return (Objection(Term.DURATION, f"no terms are in force now; the contract is {state}"),)
    terms = agreement.contract
    if task.origin != terms.buyer:
        raise RefusedError(
            f"{task.origin} is the seller: under this contract it runs load of {terms.buyer}",
            place=place,
            hint="load in the other direction needs another contract.",
        )
    found = objections(terms, task, used, now_ms)
    if fragment.stateful_box is None or fragment.state_limit_bytes is not None:
        return found
    why = "the size of its state has no limit: set `state_limit` in its document"
    return (*found, Objection(Term.LIMITS, why))


def check_permitted(contract: Negotiation, fragment: Fragment, task: Task, now_ms: Millis) -> None:
    """Check that a fragment may be sent under a contract of which nothing is used yet.

    Raises:
        RefusedError: it may not; names each term that forbids it, and why.
    """
    found = refusals(contract, fragment, task, NO_LOAD, now_ms)
    if found:
        terms = ", ".join(dict.fromkeys(one.term.value for one in found))
        reasons = "; ".join(f"{one.term.value}: {one.why}" for one in found)
        raise RefusedError(
            f"contract {contract.contract} does not permit it, by its {terms}: {reasons}",
            place=f"fragment {fragment.names.id}",
            hint=f"`medusa contract show {contract.contract}` has its terms.",
        )


def _regions(fragment: Fragment) -> frozenset[str]:
    """The regions that its placement names; empty: it names none."""
    wanted = [set(one.values) for one in fragment.nodes if one.key == REGION and not one.negated]
    return frozenset(set.intersection(*wanted)) if wanted else frozenset()
