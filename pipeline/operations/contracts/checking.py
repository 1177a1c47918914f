"""Check of a deployed fragment against a contract."""

from pipeline.catalog.catalog import Catalog
from pipeline.catalog.load_records import FragmentLoad
from pipeline.catalog.snapshot import Deployed
from pipeline.contracts.negotiation.chain import Negotiation
from pipeline.deploy.documents import replan
from pipeline.errors import RefusedError
from pipeline.ids import FragmentId, Millis
from pipeline.operations.contracts.tasks import Needs, check_permitted, task_of
from pipeline.planner.plan import Fragment


def checked(
    contract: Negotiation, fragment: FragmentId, needs: Needs, catalog: Catalog, now_ms: Millis
) -> FragmentLoad:
    """Check that a contract permits to send a fragment; returns its metered load.

    Raises:
        RefusedError: it is not deployed or was not metered, or terms of the contract forbid it.
    """
    found = catalog.snapshot(fragment.network.participant)
    deployed = next((one for one in found.fragments if one.id == fragment), None)
    if deployed is None:
        there = ", ".join(str(one.id) for one in found.fragments)
        raise RefusedError(
            f"there is no fragment {fragment}", hint=f"there is: {there or 'none is deployed'}."
        )
    load = _load(deployed, catalog)
    planned = _planned(deployed, catalog)
    check_permitted(contract, planned, task_of(planned, load, needs), now_ms)
    return load


def _load(deployed: Deployed, catalog: Catalog) -> FragmentLoad:
    owner = deployed.owner
    nodes = () if owner is None else catalog.loads.of(owner.participant)
    for node in nodes:
        if owner is not None and (node.node, node.life) == (owner.node, owner.life):
            for load in node.fragments:
                if load.id == deployed.id:
                    return load
    raise RefusedError(
        "its load is not known: no node that runs it has metered it in the last minute",
        place=deployed.place,
        hint="it is metered while it runs, every ten seconds; `medusa status` shows its load.",
    )


def _planned(deployed: Deployed, catalog: Catalog) -> Fragment:
    """The fragment as it is planned, from the version that it was deployed with."""
    version = deployed.version
    record = catalog.versions.get(version.network, version.version)
    fragments = () if record is None else replan(record).fragments
    for one in fragments:
        if one.name == deployed.id.fragment:
            return one
    raise RefusedError(
        "its network was changed meanwhile", place=deployed.place, hint="run it again."
    )
