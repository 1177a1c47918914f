"""Which format is written, so that everybody who is up can read it.

1. The catalog's format record says the newest format in which anything may be written. A program
   that does not understand it does nothing at all.
2. Every node says in its record which format it understands. Nodes of several versions may be up
   together: all of them write what the catalog allows.
3. `raise_format` lets the newest format of this program be written, in one step that is done only
   if every node that is up understands it. Nobody can read what is written then with an earlier
   version, so it is the one step that cannot be taken back.

A node registers in a step that checks the format record and changes the folder of nodes; raising
the format checks that folder. So of a node that comes and a raise that would shut it out only one
is done.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from brokers.versioned_store import (
    Check,
    NoSuchPathError,
    Operation,
    Set,
    VersionConflictError,
    Versioned,
    VersionedStore,
)
from pipeline.catalog.codec import decode, encode
from pipeline.catalog.records import FormatRecord, NodeRecord
from pipeline.catalog.steps import bump
from pipeline.errors import RefusedError, RetryError
from pipeline.formats import NEWEST
from pipeline.ids import NodeId
from pipeline.names import Znodes


@dataclass(frozen=True, slots=True)
class Raised:
    """The format before and after; equal if there was nothing to raise."""

    before: int
    after: int


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


def written_format(store: VersionedStore, znodes: Znodes, newest: int = NEWEST) -> int:
    """The format that the catalog allows.

    Raises:
        NewerFormatError: it is newer than `newest`.
        RefusedError: the catalog is not set up.
    """
    return _format(_read(store, znodes.format()), znodes, newest)


def registration(store: VersionedStore, znodes: Znodes, newest: int) -> tuple[Operation, ...]:
    """What a step that registers a node has to contain; reads the format first.

    Raises:
        NewerFormatError: the catalog is too new for the node.
    """
    stored = _read(store, znodes.format())
    _format(stored, znodes, newest)
    folder = _read(store, znodes.nodes())
    return (
        Check(znodes.format(), stored.version),
        Set(znodes.nodes(), folder.value, folder.version),
    )


def raise_format(store: VersionedStore, znodes: Znodes, newest: int = NEWEST) -> Raised:
    """Let everything be written in the newest format of this program.

    Args:
        store: where the catalog is.
        znodes: its paths.
        newest: the format to raise to.

    Raises:
        NewerFormatError: the catalog is newer than that.
        RefusedError: a node that is up does not understand it; nothing was changed.
        RetryError: somebody changed the catalog meanwhile; nothing was changed.
    """
    stored = _read(store, znodes.format())
    before = _format(stored, znodes, newest)
    folder, revision = _read(store, znodes.nodes()), _read(store, znodes.networks())
    if before == newest:
        return Raised(before, before)
    check_all_read(newest, _nodes(store, znodes, newest))
    try:
        store.apply(
            (
                Check(znodes.nodes(), folder.version),
                Set(znodes.format(), encode(FormatRecord(newest)), stored.version),
                bump(znodes, revision),  # nodes look again when it changes
            )
        )
    except (VersionConflictError, NoSuchPathError) as error:
        raise RetryError(
            "a node came, or somebody changed the catalog meanwhile; nothing was changed",
            hint="run it again.",
        ) from error
    return Raised(before, newest)


def _nodes(store: VersionedStore, znodes: Znodes, newest: int) -> Iterator[NodeRecord]:
    paths = (znodes.node(NodeId(name)) for name in store.children(znodes.nodes()))
    for path in paths:
        found = store.get(path)
        if found is not None:
            yield decode(NodeRecord, found.value, path, newest)


def _format(stored: Versioned, znodes: Znodes, newest: int) -> int:
    return decode(FormatRecord, stored.value, znodes.format(), newest).format


def _read(store: VersionedStore, path: str) -> Versioned:
    found = store.get(path)
    if found is None:
        raise RefusedError("the catalog is not set up", hint="`medusa up` sets it up.")
    return found
