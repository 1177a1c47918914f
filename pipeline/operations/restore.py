"""Restore of the catalog from a backup, with epochs no lower than those in commit markers."""

from brokers.kafka_interface import NoSuchTopicError
from pipeline.catalog.backup import Backup, restore
from pipeline.ids import Epoch
from pipeline.names import FragmentNames
from pipeline.operations.connections import Connections
from pipeline.operations.positions import last_marker


def restore_catalog(backup: Backup, connections: Connections) -> int:
    """Write the entries of a backup into the catalog; returns the number of changed entries.

    Fragments continue from their last commit markers, so their epochs are restored from these, too.

    Raises:
        RefusedError: the catalog is newer than this program, or contains something else.
        RetryError: the catalog was changed at the same time; run it again.
    """
    newest = connections.catalog.format.newest  # raises for a newer catalog
    written = _epochs(backup, connections)
    return restore(connections.store, backup, written, newest)


def _epochs(backup: Backup, connections: Connections) -> dict[FragmentNames, Epoch]:
    """The epoch of every fragment's last commit marker, of those that ever ran."""
    found: dict[FragmentNames, Epoch] = {}
    for names in backup.fragments:
        try:
            marker = last_marker(names, connections)
        except NoSuchTopicError:
            continue
        if marker is not None:
            found[names] = marker.epoch
    return found
