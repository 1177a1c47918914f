"""Pause and resume of single fragments, or of all fragments of a network."""

from pipeline.catalog.catalog import Catalog
from pipeline.catalog.network_steps import no_fragment
from pipeline.catalog.records import DesiredState
from pipeline.errors import RefusedError
from pipeline.ids import FragmentName, NetworkId, NetworkName, ParticipantId

_SEPARATOR = "."


def parse_target(target: str, participant: ParticipantId) -> tuple[NetworkId, FragmentName | None]:
    """Parse `NETWORK` or `NETWORK.FRAGMENT` of a participant."""
    name, dot, fragment = target.partition(_SEPARATOR)
    network = NetworkId(participant, NetworkName(name))
    return network, FragmentName(fragment) if dot else None


def pause(
    network: NetworkId, fragment: FragmentName | None, catalog: Catalog
) -> tuple[FragmentName, ...]:
    """Pause running fragments until they are resumed; returns those that were running.

    Raises:
        RefusedError: there is no such fragment, or the network is stopped.
    """
    return _move(network, fragment, catalog, DesiredState.RUNNING, DesiredState.PAUSED)


def resume(
    network: NetworkId, fragment: FragmentName | None, catalog: Catalog
) -> tuple[FragmentName, ...]:
    """Set paused fragments to running; returns those that were paused.

    Raises:
        RefusedError: there is no such fragment, or the network is stopped.
    """
    return _move(network, fragment, catalog, DesiredState.PAUSED, DesiredState.RUNNING)


def _move(
    network: NetworkId,
    fragment: FragmentName | None,
    catalog: Catalog,
    before: DesiredState,
    after: DesiredState,
) -> tuple[FragmentName, ...]:
    records = catalog.fragments.of(network)
    found = [record for record in records if fragment in {None, record.fragment}]
    if fragment is not None and not found:
        raise no_fragment(network, fragment, (record.fragment for record in records))
    if all(record.desired is DesiredState.STOPPED for record in found):
        raise RefusedError(
            "it is stopped",
            place=f"network {network}",
            hint="`medusa deploy` lets it run.",
        )
    names = tuple(record.fragment for record in found if record.desired is before)
    if names:
        catalog.fragments.set_desired(network, after, names, before)
    return names
