"""Status of the fragments of one network, or of all."""

from collections.abc import Mapping
from types import MappingProxyType

from pipeline.deploy.remove import deployed
from pipeline.ids import Epoch, FragmentName, NetworkName
from pipeline.operations.connections import Connections
from pipeline.operations.status.observed import ObservedFragment, observe


def fragments_status(
    network: NetworkName | None, connections: Connections
) -> tuple[ObservedFragment, ...]:
    """The fragments of a network, or of all networks, as they are now.

    Args:
        network: which; None: all.
        connections: to ZooKeeper.

    Raises:
        RefusedError: the network is not deployed.
    """
    if network is None:
        names = [record.network for record in connections.catalog.networks()]
    else:
        names = [deployed(network, connections.catalog).network]
    return tuple(one for name in names for one in network_status(connections, name))


def network_status(
    connections: Connections,
    network: NetworkName,
    until: Mapping[FragmentName, Epoch] = MappingProxyType({}),
) -> tuple[ObservedFragment, ...]:
    """The fragments of a network as they are now, without reports up to the epochs in `until`."""
    catalog = connections.catalog
    reports = [s for s in catalog.statuses(network) if s.epoch > until.get(s.fragment, 0)]
    return observe(catalog.fragments(network), reports, catalog.nodes())
