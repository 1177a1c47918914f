"""Plans of the deployed networks, as this program plans them."""

from pipeline.catalog.catalog import Catalog
from pipeline.deploy.documents import replan_or_none
from pipeline.planner.plan import Plan


def deployed_plans(catalog: Catalog) -> tuple[Plan, ...]:
    """The plan of every deployed network; without those that this version cannot plan."""
    deployed = catalog.versions.deployed()
    plans = (replan_or_none(version, record.owner) for record, version in deployed)
    return tuple(plan for plan in plans if plan is not None)
