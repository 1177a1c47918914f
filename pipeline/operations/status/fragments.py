"""Status of the fragments of one network, or of all networks of a participant."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pipeline.catalog.fragment_status import LaneState
from pipeline.deploy.remove import deployed
from pipeline.ids import NO_EPOCH, Epoch, FragmentId, FragmentName, NetworkId
from pipeline.operations.connections import Connections
from pipeline.operations.status.loads import with_loads
from pipeline.operations.status.observed import Around, ObservedFragment, observe
from pipeline.operations.status.standbys import observed_standbys


def fragments_status(
    network: NetworkId | None, connections: Connections
) -> tuple[ObservedFragment, ...]:
    """Present status of the fragments of a network, or of all networks of the participant.

    Args:
        network: the network; None: all of the participant.
        connections: to ZooKeeper.

    Raises:
        RefusedError: the network is not deployed.
    """
    catalog = connections.catalog
    names = [record.network for record in catalog.networks.of(connections.participant)]
    if network is not None and network not in names:
        names.append(deployed(network, catalog).network)
    # All of them: a fragment may wait for one of another network.
    seen = networks_status(connections, names)
    shown = (one for one in seen if network in {None, one.record.network})
    return with_loads(tuple(shown), catalog.loads.all())


def networks_status(
    connections: Connections,
    networks: Sequence[NetworkId],
    until: Mapping[FragmentName, Epoch] = MappingProxyType({}),
) -> tuple[ObservedFragment, ...]:
    """Present status of the fragments of networks, without reports up to the epochs in `until`.

    Of the reports before a first claim only a failure counts.
    """
    catalog = connections.catalog
    reports = [
        one
        for one in catalog.statuses.of(*networks)
        if one.epoch > until.get(one.fragment, NO_EPOCH)
        or (one.state is LaneState.FAILED and one.fragment not in until)
    ]
    records = catalog.fragments.of(*networks)
    nodes = catalog.nodes.of(connections.participant)
    followed = any(record.reliability.secondaries for record in records)
    limited = any(node.most_fragments for node in nodes)
    found = catalog.snapshot(connections.participant) if followed or limited else None
    return observe(
        records,
        reports,
        nodes,
        Around(
            observed_standbys(found) if found and followed else {},
            catalog.trims.of_fragments(*(FragmentId(one.network, one.fragment) for one in records)),
            found.placement.queued if found and limited else frozenset(),
        ),
    )
