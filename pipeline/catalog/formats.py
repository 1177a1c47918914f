"""The catalog's format: which format may be written, so that every node that is up can read it.

1. The format record names the newest format in which anything may be written. A program that does
   not understand it refuses to use the catalog.
2. The record of a node names the newest format that the node understands. Nodes of several versions
   may be up together: all of them write what the catalog allows.
3. `raise_to_newest` allows the newest format of this program, in one step that is done only if
   every node that is up understands it. Earlier versions cannot read what is written then, so this
   step cannot be reverted.

A node registers in a step that checks the format record and changes the folder of nodes; raising
the format checks that folder. So of a registration and a raise that excludes it only one is done.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from brokers.versioned_store import (
    Check,
    Create,
    NoSuchPathError,
    Operation,
    PathExistsError,
    Set,
    VersionConflictError,
)
from pipeline.catalog.codec import encode
from pipeline.catalog.network_steps import bump
from pipeline.catalog.record_store import RecordStore, Values
from pipeline.catalog.records import FormatRecord, NodeRecord, RevisionRecord
from pipeline.errors import RefusedError, RetryError


@dataclass(frozen=True, slots=True)
class CatalogFormat:
    """The format record of the catalog."""

    records: RecordStore

    @property
    def newest(self) -> int:
        """The newest format that this program understands."""
        return self.records.newest

    def ensure(self) -> None:
        """Set the catalog up if it is new, and check that this program understands it.

        Raises:
            NewerFormatError: its format is newer than `newest`.
        """
        znodes, store = self.records.znodes, self.records.store
        if self.records.read(FormatRecord, znodes.format()) is not None:
            return
        if znodes.root:
            store.make_parents(znodes.root)
        values = {
            znodes.format(): encode(FormatRecord(self.newest)),
            znodes.networks(): encode(RevisionRecord(0)),
            znodes.participants(): b"",
            znodes.nodes(): b"",
            znodes.epochs(): b"",
            znodes.missing_schemas(): b"",
            znodes.missing_guids(): b"",
            znodes.deploys(): b"",
        }
        try:
            store.apply(tuple(Create(path, value) for path, value in values.items()))
        except PathExistsError:
            if self.records.read(FormatRecord, znodes.format()) is None:
                raise

    def current(self) -> int:
        """The newest format in which anything may be written.

        Raises:
            NewerFormatError: it is newer than `newest`.
            RefusedError: the catalog is not set up.
        """
        path = self.records.znodes.format()
        return format_of(self.records.values(path), path)

    def raise_to_newest(self) -> int:
        """Allow the newest format of this program; returns the format that was allowed before.

        Raises:
            NewerFormatError: the catalog is newer than that.
            RefusedError: a node that is up does not understand it; nothing was changed.
            RetryError: somebody changed the catalog meanwhile; nothing was changed.
        """
        records, znodes = self.records, self.records.znodes
        stored = records.values(znodes.format(), znodes.nodes(), znodes.networks())
        before = format_of(stored, znodes.format())
        if before == self.newest:
            return before
        check_all_read(self.newest, records.read_below(NodeRecord, znodes.nodes()))
        newest = encode(FormatRecord(self.newest))
        try:
            records.store.apply(
                (
                    Check(znodes.nodes(), stored.required(znodes.nodes()).version),
                    Set(znodes.format(), newest, stored[znodes.format()].version),
                    bump(znodes, stored.required(znodes.networks())),  # nodes look again
                )
            )
        except (VersionConflictError, NoSuchPathError) as error:
            raise RetryError(
                "a node came, or somebody changed the catalog meanwhile; nothing was changed",
                hint="run it again.",
            ) from error
        return before


def format_of(stored: Values, path: str) -> int:
    """The format that the stored format record at `path` allows.

    Raises:
        NewerFormatError: it is newer than the program understands.
        RefusedError: the catalog is not set up.
    """
    return stored.required_record(FormatRecord, path).format


def registration(records: RecordStore) -> tuple[Operation, ...]:
    """The operations that a step which registers a node contains; reads the format first.

    Raises:
        NewerFormatError: the catalog is too new for the node.
    """
    znodes = records.znodes
    stored = records.values(znodes.format(), znodes.nodes())
    format_of(stored, znodes.format())
    folder = stored.required(znodes.nodes())
    return (
        Check(znodes.format(), stored[znodes.format()].version),
        Set(znodes.nodes(), folder.value, folder.version),
    )


def check_all_read(newest: int, nodes: Iterable[NodeRecord]) -> None:
    """Make sure that all nodes understand a format.

    Raises:
        RefusedError: names those that do not.
    """
    older = [
        f"{node.node} (Medusa {node.version} on {node.host}, reads up to format {node.reads})"
        for node in nodes
        if node.reads < newest
    ]
    if older:
        raise RefusedError(
            f"format {newest} is not understood by every node that is up: {', '.join(older)}",
            hint="start these nodes again with this version of Medusa, then raise the format. "
            "Nothing was changed; until then all nodes go on as they are.",
        )
