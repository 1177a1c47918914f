"""Status of the fragments of one network, or of all networks of a participant."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pipeline.catalog.records import LaneState
from pipeline.deploy.remove import deployed
from pipeline.ids import NO_EPOCH, Epoch, FragmentName, NetworkId
from pipeline.operations.connections import Connections
from pipeline.operations.status.observed import ObservedFragment, observe


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
    only = None if network is None else deployed(network, connections.catalog).network
    records = connections.catalog.networks.of(connections.participant)
    # A fragment may wait for one of another network.
    seen = networks_status(connections, [record.network for record in records])
    return tuple(one for one in seen if only is None or one.record.network == only)


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
    return observe(
        catalog.fragments.of(*networks), reports, catalog.nodes.of(connections.participant)
    )
