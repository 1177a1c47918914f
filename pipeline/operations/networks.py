"""Plans of the deployed networks, as this program plans them."""

from pipeline.catalog.catalog import Catalog
from pipeline.deploy.documents import replan
from pipeline.errors import DocumentError
from pipeline.operations.connections import Connections
from pipeline.planner.plan import Plan


def deployed_plans(connections: Connections) -> tuple[Plan, ...]:
    """The plan of every deployed network; without those that this version cannot plan."""
    return plans_in(connections.catalog)


def plans_in(catalog: Catalog) -> tuple[Plan, ...]:
    """The same, from a catalog."""
    plans: list[Plan] = []
    for record in catalog.networks():
        version = catalog.version(record.network, record.version)
        if version is None:
            continue
        try:
            plans.append(replan(version, record.owner))
        except DocumentError:
            continue  # deployed by another version of this program; its topics are still topics
    return tuple(plans)
