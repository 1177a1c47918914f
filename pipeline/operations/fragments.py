"""Lookup of deployed fragments by the names that users type."""

from pipeline.errors import RefusedError
from pipeline.ids import ParticipantId
from pipeline.operations.connections import Connections
from pipeline.operations.networks import own_plans
from pipeline.planner.plan import Fragment, Plan


def label(fragment: Fragment, participant: ParticipantId | None = None) -> str:
    """The name of a fragment across networks: `network.fragment`.

    `participant`: of the reader; fragments of other participants have theirs as a prefix.
    """
    found = fragment.names.id
    owner = found.network.participant
    return f"{owner}.{found}" if participant not in {None, owner} else str(found)


def fragments_of(name: str, connections: Connections) -> tuple[Fragment, ...]:
    """The deployed fragments named `NETWORK`, `NETWORK.FRAGMENT` or `FRAGMENT`; "" is all.

    Raises:
        RefusedError: no fragment has the name; lists those that exist.
    """
    every = tuple(f for plan in own_plans(connections) for f in plan.fragments)
    found = tuple(
        f for f in every if name in {"", str(f.names.network), f.names.fragment, label(f)}
    )
    if name and not found:
        there = ", ".join(label(f) for f in every)
        raise RefusedError(
            f"there is no network or fragment {name}",
            hint=f"there is: {there}." if there else "no network is deployed.",
        )
    return found


def fragment_of(name: str, connections: Connections) -> Fragment:
    """The only fragment with a name.

    Raises:
        RefusedError: there is none, or several.
    """
    found = fragments_of(name, connections)
    exact = [f for f in found if name in {label(f), f.names.fragment}] or found
    if len(exact) != 1:
        several = ", ".join(label(f) for f in found)
        raise RefusedError(f"{name} means several fragments", hint=f"write one of: {several}.")
    return exact[0]


def plan_of(fragment: Fragment, connections: Connections) -> Plan:
    """The plan of the network that a deployed fragment belongs to.

    Raises:
        RefusedError: the network is not deployed any more.
    """
    network = fragment.names.network
    plan = next(
        (one for one in own_plans(connections) if one.network == network),
        None,
    )
    if plan is None:
        raise RefusedError("it is not deployed any more", place=f"network {network}")
    return plan
