"""Format version of the catalog: the newest format that may be written, readable by every node.

1. The format record contains the newest format that may be written. A program that cannot read this
   format does not use the catalog.
2. The record of a node contains the newest format that the node can read. Nodes of several versions
   may be up together: all of them write in formats that the catalog permits.
3. `raise_to_newest` permits the newest format of this program, in one step that succeeds only if
   every node that is up can read it. Earlier versions cannot read records in that format, so this
   step cannot be reverted.

A node registers in a step that checks the format record and changes its participant's folder of
nodes; raising the format checks these folders, and that no participant was added concurrently. So
of a registration and a raise that excludes it only one succeeds.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

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
from pipeline.catalog.records import FormatRecord, NodeRecord, ParticipantRecord, RevisionRecord
from pipeline.catalog.retrying import retrying
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import ParticipantId


@dataclass(frozen=True, slots=True)
class CatalogFormat:
    """The format record of the catalog."""

    records: RecordStore

    @property
    def newest(self) -> int:
        """The newest format that this program can read."""
        return self.records.newest

    def ensure(self, *participants: ParticipantId) -> None:
        """Set the catalog up if it is new, and check that this program can read it.

        Also adds the participants that it does not contain yet.

        Raises:
            NewerFormatError: its format is newer than `newest`.
        """
        records, znodes = self.records, self.records.znodes
        of_all = [znodes.participant(one) for one in participants]
        found = records.values(znodes.format(), *of_all)
        if found.record(FormatRecord, znodes.format()) is None:
            self._set_up()
        for participant, path in zip(participants, of_all, strict=True):
            if path not in found:
                retrying(partial(self._add, participant), f"participant {participant}")

    def _set_up(self) -> None:
        records, znodes = self.records, self.records.znodes
        if znodes.root:
            records.store.make_parents(znodes.root)
        values = {
            znodes.format(): encode(FormatRecord(self.newest)),
            znodes.participants(): b"",
            znodes.missing_schemas(): b"",
            znodes.missing_guids(): b"",
        }
        try:
            records.store.apply(tuple(Create(path, value) for path, value in values.items()))
        except PathExistsError:
            if records.read(FormatRecord, znodes.format()) is None:
                raise

    def _add(self, participant: ParticipantId) -> None:
        """Add a participant, unless it exists; changes a folder that raising the format checks."""
        records, znodes = self.records, self.records.znodes
        path = znodes.participant(participant)
        stored = records.values(znodes.participants(), path)
        if path in stored:
            return
        folder = stored.required(znodes.participants())
        values = {
            path: encode(ParticipantRecord(participant)),
            znodes.networks(participant): encode(RevisionRecord(0)),
            znodes.nodes(participant): b"",
            znodes.epochs(participant): b"",
            znodes.deploys(participant): b"",
        }
        changed = Set(znodes.participants(), folder.value, folder.version)
        records.store.apply((changed, *(Create(path, value) for path, value in values.items())))

    def current(self) -> int:
        """The newest format that may be written.

        Raises:
            NewerFormatError: it is newer than `newest`.
            RefusedError: the catalog is not set up.
        """
        path = self.records.znodes.format()
        return format_of(self.records.values(path), path)

    def raise_to_newest(self) -> int:
        """Permit the newest format of this program; returns the format permitted before.

        Raises:
            NewerFormatError: the catalog is newer than that.
            RefusedError: a node that is up cannot read it; nothing was changed.
            RetryError: the catalog was changed concurrently; nothing was changed.
        """
        records, znodes = self.records, self.records.znodes
        upper = records.values(znodes.format(), znodes.participants())
        before = format_of(upper, znodes.format())
        if before == self.newest:
            return before
        participants = records.participants()
        of_nodes = [znodes.nodes(one) for one in participants]
        of_networks = [znodes.networks(one) for one in participants]
        lower = records.values(*of_nodes, *of_networks)
        check_all_read(self.newest, records.read_below(NodeRecord, *of_nodes))
        newest = encode(FormatRecord(self.newest))
        folders = upper.required(znodes.participants())
        try:
            records.store.apply(
                (
                    Check(znodes.participants(), folders.version),
                    *(Check(path, lower.required(path).version) for path in of_nodes),
                    Set(znodes.format(), newest, upper[znodes.format()].version),
                    *(bump(path, lower.required(path)) for path in of_networks),  # nodes read again
                )
            )
        except (VersionConflictError, NoSuchPathError) as error:
            raise RetryError(
                "a node registered, or the catalog was changed concurrently; nothing was changed",
                hint="run it again.",
            ) from error
        return before


def format_of(stored: Values, path: str) -> int:
    """The format that the stored format record at `path` permits.

    Raises:
        NewerFormatError: it is newer than this program can read.
        RefusedError: the catalog is not set up.
    """
    return stored.required_record(FormatRecord, path).format


def registration(records: RecordStore, participant: ParticipantId) -> tuple[Operation, ...]:
    """The checks that are part of a step which registers a node; reads the format first.

    Raises:
        NewerFormatError: the catalog is too new for the node.
    """
    znodes = records.znodes
    path = znodes.nodes(participant)
    stored = records.values(znodes.format(), path)
    format_of(stored, znodes.format())
    folder = stored.required(path)
    return (
        Check(znodes.format(), stored[znodes.format()].version),
        Set(path, folder.value, folder.version),
    )


def check_all_read(newest: int, nodes: Iterable[NodeRecord]) -> None:
    """Check that all nodes can read a format.

    Raises:
        RefusedError: names the nodes that cannot.
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
