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
    Versioned,
)
from pipeline.catalog.codec import encode
from pipeline.catalog.network_steps import bump
from pipeline.catalog.record_store import RecordStore, required
from pipeline.catalog.records import FormatRecord, NodeRecord, RevisionRecord
from pipeline.errors import RefusedError, RetryError


@dataclass(frozen=True, slots=True)
class Raised:
    """The format before and after; equal if there was nothing to raise."""

    before: int
    after: int


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
        folders = (
            znodes.participants(),
            znodes.nodes(),
            znodes.epochs(),
            znodes.missing_schemas(),
        )
        try:
            store.apply(
                (
                    Create(znodes.format(), encode(FormatRecord(self.newest))),
                    Create(znodes.networks(), encode(RevisionRecord(0))),
                    *(Create(folder, b"") for folder in folders),
                )
            )
        except PathExistsError:
            if self.records.read(FormatRecord, znodes.format()) is None:
                raise

    def current(self) -> int:
        """The newest format in which anything may be written.

        Raises:
            NewerFormatError: it is newer than `newest`.
            RefusedError: the catalog is not set up.
        """
        return format_of(self.records, self.records.store.get(self.records.znodes.format()))

    def raise_to_newest(self) -> Raised:
        """Allow the newest format of this program.

        Raises:
            NewerFormatError: the catalog is newer than that.
            RefusedError: a node that is up does not understand it; nothing was changed.
            RetryError: somebody changed the catalog meanwhile; nothing was changed.
        """
        records, znodes = self.records, self.records.znodes
        stored = required(records.store.get(znodes.format()))
        before = format_of(records, stored)
        folder = required(records.store.get(znodes.nodes()))
        revision = required(records.store.get(znodes.networks()))
        if before == self.newest:
            return Raised(before, before)
        check_all_read(self.newest, records.read_below(NodeRecord, znodes.nodes()))
        try:
            records.store.apply(
                (
                    Check(znodes.nodes(), folder.version),
                    Set(znodes.format(), encode(FormatRecord(self.newest)), stored.version),
                    bump(znodes, revision),  # nodes look again when it changes
                )
            )
        except (VersionConflictError, NoSuchPathError) as error:
            raise RetryError(
                "a node came, or somebody changed the catalog meanwhile; nothing was changed",
                hint="run it again.",
            ) from error
        return Raised(before, self.newest)


def format_of(records: RecordStore, stored: Versioned | None) -> int:
    """The format that a stored format record allows.

    Raises:
        NewerFormatError: it is newer than the program understands.
        RefusedError: the catalog is not set up.
    """
    return records.decode(FormatRecord, required(stored), records.znodes.format()).format


def registration(records: RecordStore) -> tuple[Operation, ...]:
    """The operations that a step which registers a node contains; reads the format first.

    Raises:
        NewerFormatError: the catalog is too new for the node.
    """
    znodes, store = records.znodes, records.store
    stored = required(store.get(znodes.format()))
    format_of(records, stored)
    folder = required(store.get(znodes.nodes()))
    return (
        Check(znodes.format(), stored.version),
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
