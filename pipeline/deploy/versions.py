"""Versions of a network: history, differences between two, and their documents."""

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
    """One version: its record, a description of its changes, and whether it is deployed."""

    record: NetworkVersionRecord
    changed: str
    deployed: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference between two versions of a network.

    Args:
        items: the changes by fragment, without unchanged fragments.
        identical: whether the texts of documents, schemas and code are equal.
    """

    network: NetworkId
    old: NetworkVersion
    new: NetworkVersion
    items: tuple[Item, ...]
    identical: bool


def history(network: NetworkRecord, catalog: Catalog, newest: int) -> tuple[Version, ...]:
    """The newest versions, the newest first.

    Args:
        network: the deployed network.
        catalog: contains its versions.
        newest: the number of versions.
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
    """Compute the difference between two versions.

    Raises:
        RefusedError: a version does not exist.
        DocumentError: this program cannot read one of them.
    """
    before, after = version_of(network, old, catalog), version_of(network, new, catalog)
    items = between(replan(before), replan(after))
    return Difference(network.network, old, new, items, _content(before) == _content(after))


def version_of(
    network: NetworkRecord, version: NetworkVersion, catalog: Catalog
) -> NetworkVersionRecord:
    """The record of a version.

    Raises:
        RefusedError: the version does not exist.
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
        RefusedError: the version does not exist.
        DocumentError: this program cannot read it.
    """
    return deployed_document(version_of(network, version, catalog))


def _content(record: NetworkVersionRecord) -> tuple[str, dict[StreamName, str], dict[BoxName, str]]:
    return (record.document, dict(record.schemas), dict(record.code))
