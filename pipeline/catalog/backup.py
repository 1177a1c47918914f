"""Backup and restore of the catalog, as one JSON document.

A backup contains the decisions of users and deploys (networks, versions, registered schemas) and
monotonic state (epochs, which fragments have run). It does not contain what is about running nodes:
nodes, drains, owners, status. Records and commit markers are in Kafka; they need no backup here.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from brokers.versioned_store import Create, Operation, Set, Versioned, VersionedStore
from pipeline.catalog.codec import decode, encode
from pipeline.catalog.records import EpochRecord, FormatRecord, RevisionRecord
from pipeline.errors import RefusedError
from pipeline.formats import NEWEST, check
from pipeline.ids import (
    Epoch,
    FragmentId,
    FragmentName,
    Millis,
    NetworkId,
    NetworkName,
    ParticipantId,
    ZnodePath,
)
from pipeline.names import FragmentNames, Znodes
from schemas.json_value import Json

FORMAT_VERSION: Final = 1
"""Format version of the document, which nodes do not read: independent of the catalog's format."""
STEP_BYTES: Final = 500_000
"""Maximum bytes per restore step; running an interrupted restore again continues it."""
CONFLICTS_SHOWN: Final = 5
_KIND: Final = "medusa-catalog"
_ZNODES: Final = Znodes("")


def _below(folder: Callable[[ParticipantId], ZnodePath]) -> str:
    """Regular expression of one folder of any participant."""
    return folder(ParticipantId("([^/]+)"))


_ROOTS: Final = (
    _ZNODES.format(),
    _ZNODES.participants(),
    _ZNODES.missing_schemas(),
    _ZNODES.missing_guids(),
    _ZNODES.registry(),
)
_PARTICIPANT: Final = re.compile(rf"{_ZNODES.participants()}(/[^/]+)?")
_REVISION: Final = re.compile(_below(_ZNODES.networks))
_NETWORK: Final = re.compile(rf"{_below(_ZNODES.networks)}/([^/]+)")
_FRAGMENT: Final = re.compile(rf"{_NETWORK.pattern}/fragments/([^/]+)")
_EPOCHS: Final = re.compile(_below(_ZNODES.epochs))
_EPOCH: Final = re.compile(rf"{_EPOCHS.pattern}/[^/]+")
_OF_RUNNING_NODES: Final = re.compile(
    rf"{_below(_ZNODES.nodes)}/[^/]+|{_below(_ZNODES.drained)}|{_below(_ZNODES.transfers)}|"
    rf"{_below(_ZNODES.trims)}(/[^/]+)?|"
    rf"{_FRAGMENT.pattern}/(owner|status)"
)


@dataclass(frozen=True, slots=True)
class Backup:
    """Backup of a catalog. `entries`: values by path, parents before their children."""

    made_at_ms: Millis
    entries: Mapping[str, str]

    @property
    def networks(self) -> tuple[NetworkId, ...]:
        """The networks in it."""
        found = (_NETWORK.fullmatch(path) for path in self.entries)
        return tuple(_network(*match.groups()) for match in found if match)

    @property
    def fragments(self) -> tuple[FragmentNames, ...]:
        """The fragments in it."""
        found = (_FRAGMENT.fullmatch(path) for path in self.entries)
        return tuple(
            FragmentNames(FragmentId(_network(participant, network), FragmentName(fragment)))
            for participant, network, fragment in (match.groups() for match in found if match)
        )

    @property
    def schemas(self) -> int:
        """Number of schemas with ids of Medusa's registry; 0 if another registry was used."""
        contents = f"{_ZNODES.registry()}/contents/"
        return sum(path.startswith(contents) for path in self.entries)


def _network(participant: str, name: str) -> NetworkId:
    return NetworkId(ParticipantId(participant), NetworkName(name))


def read(store: VersionedStore, now_ms: Millis) -> Backup:
    """Read a whole catalog. Not atomic: concurrent changes are contained or not."""
    found: dict[str, str] = {}
    paths: Sequence[str] = _ROOTS
    while paths:
        values = zip(paths, store.get_all(paths), strict=True)
        level = {path: value.value.decode() for path, value in values if value is not None}
        found |= level
        listed = zip(level, store.children_all(tuple(level)), strict=True)
        below = (f"{path}/{name}" for path, names in listed for name in names)
        paths = tuple(path for path in below if not _OF_RUNNING_NODES.fullmatch(path))
    return Backup(now_ms, {path: found[path] for path in sorted(found, key=_position)})


def _position(path: str) -> tuple[int, list[str]]:
    """Sort key of an entry: below its root, after its parent."""
    parts = path.split("/")
    return _ROOTS.index(ZnodePath(f"/{parts[1]}")), parts


def dumps(backup: Backup) -> str:
    """Serialise as JSON with one line for each entry, so that backups can be compared."""
    head = {"kind": _KIND, "format": FORMAT_VERSION, "made_at_ms": backup.made_at_ms}
    opening = json.dumps(head, indent=2)[:-2]
    entries = json.dumps(dict(backup.entries), indent=4, ensure_ascii=False)
    return f'{opening},\n  "entries": {entries}\n}}\n'


def loads(text: str, place: str) -> Backup:
    """Parse a document of `dumps`.

    Args:
        text: the document.
        place: its name, for errors.

    Raises:
        RefusedError: it is not a backup, or it is damaged.
        NewerFormatError: a newer version of Medusa created it.
    """
    try:
        document = json.loads(text)
        kind, version = document["kind"], document["format"]
        entries, made_at_ms = document["entries"], document["made_at_ms"]
    except (ValueError, KeyError, TypeError) as error:
        raise _not_one(place) from error
    if kind != _KIND or not isinstance(version, int) or not _plain(entries, made_at_ms):
        raise _not_one(place)
    backup = Backup(Millis(made_at_ms), entries)
    check(version, "backup", place, FORMAT_VERSION)
    if _ZNODES.format() not in entries:
        raise _not_one(place)
    decode(FormatRecord, entries[_ZNODES.format()].encode(), f"{place}, {_ZNODES.format()}")
    return backup


def _plain(entries: Json, made_at_ms: Json) -> bool:
    return (
        isinstance(made_at_ms, int)
        and isinstance(entries, dict)
        and all(isinstance(value, str) for value in entries.values())
        and all(
            path in _ROOTS or path.startswith(tuple(f"{r}/" for r in _ROOTS)) for path in entries
        )
    )


def _not_one(place: str) -> RefusedError:
    return RefusedError(
        "this is no whole backup of a catalog",
        place=place,
        hint="`medusa catalog backup FILE` makes one.",
    )


def restored(
    backup: Backup,
    stored: Mapping[str, Versioned],
    written: Mapping[FragmentNames, Epoch],
    newest: int = NEWEST,
) -> tuple[Operation, ...]:
    """Compute the operations that restore a backup into a catalog.

    Existing entries stay. Epochs never decrease: neither below the stored ones, nor below the epoch
    in a fragment's last commit marker. They are restored first, so that a node that is up never
    reads a fragment without its epoch.

    Args:
        backup: the backup.
        stored: values of the catalog, at the paths of the backup and of `written`'s epochs.
        written: the epoch of the last commit marker of each fragment that has one.
        newest: the newest format that this program can read.

    Raises:
        RefusedError: the catalog has another value at a path, or the backup is of a catalog in a
            newer format than this one's.
    """
    floors: dict[str, Epoch] = {_epoch(names): epoch for names, epoch in written.items()}
    operations: list[Operation] = []
    conflicts: list[str] = []
    for path in sorted(dict.fromkeys((*backup.entries, *floors)), key=_stage):
        found, value = stored.get(path), backup.entries.get(path, "").encode()
        if _EPOCH.fullmatch(path):
            value = _largest_epoch(path, value, found, floors.get(path))
        elif _REVISION.fullmatch(path) and found is not None:
            value = _next_revision(path, value, found)
        elif path == _ZNODES.format() and found is not None:
            value = _kept_format(path, value, found, newest)
        elif found is not None and found.value != value:
            conflicts.append(path)
        if found is None:
            operations.append(Create(path, value))
        elif found.value != value:
            operations.append(Set(path, value, found.version))
    if conflicts:
        more = f" and {len(conflicts) - CONFLICTS_SHOWN} more" * (len(conflicts) > CONFLICTS_SHOWN)
        raise RefusedError(
            f"the catalog holds something else at {', '.join(conflicts[:CONFLICTS_SHOWN])}{more}",
            hint="restore into an empty catalog: another chroot in zookeeper.connect will do.",
        )
    return tuple(operations)


def _stage(path: str) -> int:
    """Order of a restore: epochs with their parents first, the registry's revision last.

    Readers of that revision expect the registry's other entries to exist.
    """
    if any(pattern.fullmatch(path) for pattern in (_PARTICIPANT, _EPOCHS, _EPOCH)):
        return 0
    return 2 if path == f"{_ZNODES.registry()}/revision" else 1


def _epoch(names: FragmentNames) -> str:
    return _ZNODES.epoch(names.network, names.fragment)


def _largest_epoch(path: str, value: bytes, found: Versioned | None, floor: Epoch | None) -> bytes:
    epochs = [floor or Epoch(0)]
    epochs += [decode(EpochRecord, value, path).epoch] if value else []
    epochs += [decode(EpochRecord, found.value, path).epoch] if found else []
    return encode(EpochRecord(max(epochs)))


def _next_revision(path: str, value: bytes, found: Versioned) -> bytes:
    """A revision above both, since nodes read the catalog again when the revision changes."""
    both = [decode(RevisionRecord, one, path).revision for one in (value, found.value)]
    return encode(RevisionRecord(max(both) + 1))


def _kept_format(path: str, value: bytes, found: Versioned, newest: int) -> bytes:
    """The catalog's own format: it permits older records, and nodes depend on it."""
    both = (decode(FormatRecord, one, path, newest).format for one in (value, found.value))
    backed_up, now = both
    if backed_up > now:
        raise RefusedError(
            f"the backup is of a catalog in format {backed_up}, this one is in format {now}",
            hint="raise its format first: `medusa catalog upgrade`.",
        )
    return found.value


def steps(operations: tuple[Operation, ...]) -> Iterator[tuple[Operation, ...]]:
    """Split operations into steps of bounded size, in their order."""
    step: list[Operation] = []
    size = 0
    for operation in operations:
        length = len(operation.value) if isinstance(operation, Create | Set) else 0
        if step and size + length > STEP_BYTES:
            yield tuple(step)
            step, size = [], 0
        step.append(operation)
        size += length
    if step:
        yield tuple(step)


def restore(
    store: VersionedStore,
    backup: Backup,
    written: Mapping[FragmentNames, Epoch],
    newest: int = NEWEST,
) -> int:
    """Restore a backup into a catalog; returns the number of changed paths.

    Raises:
        RefusedError: the catalog has other values; nothing was changed.
        RetryError: the catalog was changed concurrently; run it again.
    """
    paths = tuple({*backup.entries, *map(_epoch, written)})
    values = zip(paths, store.get_all(paths), strict=True)
    stored = {path: found for path, found in values if found is not None}
    operations = restored(backup, stored, written, newest)
    for step in steps(operations):
        store.apply(step)
    return len(operations)
