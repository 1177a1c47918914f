"""Lookup of a fragment to replay, by its name or the name of one of its boxes."""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.errors import RefusedError
from pipeline.ids import NetworkVersion, TopicName
from pipeline.operations.connections import Connections
from pipeline.operations.fragments import label
from pipeline.operations.networks import own_plans
from pipeline.planner.plan import Fragment, Plan


@dataclass(frozen=True, slots=True)
class ReplayedFragment:
    """A fragment of the deployed version of its network.

    Args:
        topic_ids: of its topics, by the catalog.
    """

    fragment: Fragment
    plan: Plan
    version: NetworkVersion
    topic_ids: Mapping[TopicName, str]

    @property
    def place(self) -> str:
        """Its name in errors."""
        return f"fragment {label(self.fragment)}"


def replayed_fragment(name: str, connections: Connections) -> ReplayedFragment:
    """The fragment with a name, or with a box of that name.

    Raises:
        RefusedError: there is none, or several; lists those that exist.
    """
    plans = own_plans(connections)
    every = [(plan, fragment) for plan in plans for fragment in plan.fragments]
    found = [(p, f) for p, f in every if name in {f.names.fragment, label(f)}] or [
        (p, f)
        for p, f in every
        if name in {n for box in f.boxes for n in (box.name, f"{p.network}.{box.name}")}
    ]
    if len(found) != 1:
        there = ", ".join(label(f) for _, f in found or every)
        what = f"{name} means several fragments" if found else f"there is no fragment or box {name}"
        raise RefusedError(what, hint=f"there is: {there}." if there else "no network is deployed.")
    plan, fragment = found[0]
    network = connections.catalog.networks.get(plan.network)
    record = connections.catalog.fragments.get(plan.network, fragment.name)
    ids = record.topic_ids if record else ()
    version = network.version if network else NetworkVersion(0)
    return ReplayedFragment(fragment, plan, version, dict(ids))
