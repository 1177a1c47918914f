"""The versions of a network: what each changed, how two differ, and what was deployed by one."""

from dataclasses import dataclass

from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import NetworkRecord, NetworkVersionRecord
from pipeline.deploy.documents import Document, deployed_document, replan, replan_or_none
from pipeline.errors import RefusedError
from pipeline.ids import BoxName, NetworkId, NetworkVersion, StreamName
from pipeline.planner.changes import Item
from pipeline.planner.upgrade import between, words


@dataclass(frozen=True, slots=True)
class Version:
    """One version: its record, what it changed in words, and whether it is the deployed one."""

    record: NetworkVersionRecord
    changed: str
    deployed: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between two versions of a network.

    Args:
        items: what one made of the other, by fragment; those that are the same are left out.
        identical: whether documents, schemas and code are the same, word for word.
    """

    network: NetworkId
    old: NetworkVersion
    new: NetworkVersion
    items: tuple[Item, ...]
    identical: bool


def history(network: NetworkRecord, catalog: Catalog, newest: int) -> tuple[Version, ...]:
    """The newest versions, the newest first.

    Args:
        network: the network as it is deployed.
        catalog: where its versions are.
        newest: how many.
    """
    found: list[Version] = []
    first = max(1, network.version - newest + 1)
    before = None
    for record in catalog.versions.of(network.network, range(first - 1, network.version + 1)):
        plan = replan_or_none(record)
        if record.version >= first:
            changed = "the first version" if record.version == 1 else words(before, plan)
            found.append(Version(record, changed, record.version == network.version))
        before = plan
    return tuple(reversed(found))


def difference(
    network: NetworkRecord, old: NetworkVersion, new: NetworkVersion, catalog: Catalog
) -> Difference:
    """What differs between two versions.

    Raises:
        RefusedError: there is no such version.
        DocumentError: this program does not understand one of them.
    """
    before, after = version_of(network, old, catalog), version_of(network, new, catalog)
    items = between(replan(before), replan(after))
    return Difference(network.network, old, new, items, _content(before) == _content(after))


def version_of(
    network: NetworkRecord, version: NetworkVersion, catalog: Catalog
) -> NetworkVersionRecord:
    """A version as it was deployed.

    Raises:
        RefusedError: there is no such version.
    """
    record = catalog.versions.get(network.network, version)
    if record is None:
        raise RefusedError(
            f"there is no version {version}",
            place=f"network {network.network}",
            hint=f"it is at version {network.version}; `medusa history {network.network}` lists "
            "all of them.",
        )
    return record


def document_of(network: NetworkRecord, version: NetworkVersion, catalog: Catalog) -> Document:
    """The document of a version, to be deployed again.

    Raises:
        RefusedError: there is no such version.
        DocumentError: this program does not understand it.
    """
    return deployed_document(version_of(network, version, catalog))


def _content(record: NetworkVersionRecord) -> tuple[str, dict[StreamName, str], dict[BoxName, str]]:
    return (record.document, dict(record.schemas), dict(record.code))
