"""Warning of a deploy: the nodes that are up have too little room for all fragments. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.catalog.loads import Placeable
from pipeline.catalog.placing import place
from pipeline.catalog.records import DesiredState, FragmentRecord, OwnerRecord
from pipeline.catalog.snapshot import CatalogSnapshot
from pipeline.ids import NO_VERSION, FragmentId
from pipeline.labels import format_selector
from pipeline.planner.cost import estimated_cost_us
from pipeline.planner.plan import Fragment, Plan


@dataclass(frozen=True, slots=True)
class _Planned:
    """A fragment as it is after the deploy."""

    id: FragmentId
    record: FragmentRecord
    owner: OwnerRecord | None
    running: bool


def without_room(plan: Plan, found: CatalogSnapshot) -> Iterator[str]:
    """The fragments that will be queued: of the plan, and of other networks because of it.

    Args:
        plan: what is wanted.
        found: the participant's nodes and fragments before the deploy.
    """
    others = [one for one in found.fragments if one.id.network != plan.network]
    wanted: list[Placeable] = [*others, *_planned(plan, found)]
    queued = place(found.nodes, wanted, found.drained, level=found.level).queued
    before = found.placement.queued.intersection(one.id for one in others)
    texts = [
        f"{one.record.fragment if one.id.network == plan.network else one.id} (priority "
        f"{one.record.priority.value})"
        for one in sorted(wanted, key=lambda one: (one.record.priority.order, one.id))
        if one.id in queued - before
    ]
    if texts:
        yield (
            f"the nodes that are up, and not drained, have no room for {', '.join(texts)}: queued "
            "until one has; raise `most_fragments` of a node, or start another one"
        )


def _planned(plan: Plan, found: CatalogSnapshot) -> Iterator[_Planned]:
    before = {one.id: one for one in found.fragments}
    for fragment in plan.fragments:
        was = before.get(FragmentId(plan.network, fragment.name))
        paused = was is not None and was.record.desired is DesiredState.PAUSED
        owner = None if was is None else was.owner
        name = FragmentId(plan.network, fragment.name)
        yield _Planned(name, _record(fragment), owner, running=not paused)


def _record(fragment: Fragment) -> FragmentRecord:
    """The record of a fragment, as far as the placement reads it."""
    return FragmentRecord(
        network=fragment.names.network,
        fragment=fragment.name,
        version=NO_VERSION,
        desired=DesiredState.RUNNING,
        digest="",
        topic_ids=(),
        choice=None,
        begins=(),
        succeeds=None,
        nodes=format_selector(fragment.nodes),
        apart=fragment.apart,
        cost_us=estimated_cost_us(fragment),
        active_standbys=fragment.reliability.active_standbys,
        passive_standbys=fragment.reliability.passive_standbys,
        priority=fragment.priority,
    )
