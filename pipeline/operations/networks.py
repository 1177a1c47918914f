"""Plans of the deployed networks, computed by this version."""

from pipeline.catalog.catalog import Catalog
from pipeline.deploy.documents import replan_or_none
from pipeline.ids import ParticipantId
from pipeline.operations.connections import Connections
from pipeline.planner.plan import Plan


def deployed_plans(catalog: Catalog, participant: ParticipantId | None = None) -> tuple[Plan, ...]:
    """Plans of all deployed networks except those that this version cannot plan.

    `participant`: the owner of the networks; None: all.
    """
    plans = (replan_or_none(version) for _, version in catalog.versions.deployed(participant))
    return tuple(plan for plan in plans if plan is not None)


def own_plans(connections: Connections) -> tuple[Plan, ...]:
    """The plans of the networks of the participant for which a command acts."""
    return deployed_plans(connections.catalog, connections.participant)
