"""Typed reads of the catalog's records from the versioned store."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from brokers.versioned_store import Versioned, VersionedStore
from pipeline.catalog.codec import R, decode
from pipeline.errors import RefusedError
from pipeline.formats import NEWEST
from pipeline.ids import FragmentId, FragmentName, NetworkId, ParticipantId
from pipeline.names import Znodes


class Values(dict[str, Versioned]):
    """Stored values by path; without the paths that do not exist."""

    def __init__(self, found: Iterable[tuple[str, Versioned | None]], newest: int) -> None:
        super().__init__((path, value) for path, value in found if value is not None)
        self._newest = newest

    def record(self, kind: type[R], path: str) -> R | None:
        """The value at a path as a record; None if the path does not exist."""
        return self.required_record(kind, path) if path in self else None

    def required_record(self, kind: type[R], path: str) -> R:
        """The same for a path that exists."""
        return decode(kind, self.required(path).value, path, self._newest)

    def required(self, path: str) -> Versioned:
        """The value at a path that every catalog has.

        Raises:
            RefusedError: it is missing, since the catalog is not set up.
        """
        if path not in self:
            raise RefusedError("the catalog is not set up", hint="`medusa up` sets it up.")
        return self[path]


@dataclass(frozen=True, slots=True)
class RecordStore:
    """The versioned store of a catalog with its paths. Thread-safe if the store is.

    No method sends one request per record: the number of requests is the same for one record and
    for many.

    Args:
        store: the versioned store.
        znodes: the paths in it.
        newest: the newest format that the program can read.
    """

    store: VersionedStore
    znodes: Znodes
    newest: int = NEWEST

    def values(self, *paths: str) -> Values:
        """The values at paths, read in their order; one request."""
        return Values(zip(paths, self.store.get_all(paths), strict=True), self.newest)

    def read(self, kind: type[R], path: str) -> R | None:
        """The record at a path; None if the path does not exist."""
        return self.values(path).record(kind, path)

    def read_all(self, kind: type[R], paths: Sequence[str]) -> tuple[R | None, ...]:
        """The records at many paths, in their order; one request."""
        found = self.values(*paths)
        return tuple(found.record(kind, path) for path in paths)

    def paths_below(self, folder: str) -> tuple[str, ...]:
        """The paths directly below a path, sorted; one request."""
        return tuple(f"{folder}/{name}" for name in self.store.children(folder))

    def read_below(self, kind: type[R], *folders: str) -> tuple[R, ...]:
        """The records directly below paths, in their order and by name; two requests."""
        listed = zip(folders, self.store.children_all(folders), strict=True)
        paths = [f"{folder}/{name}" for folder, names in listed for name in names]
        return tuple(record for record in self.read_all(kind, paths) if record is not None)

    def participants(self) -> tuple[ParticipantId, ...]:
        """All participants, by name; one request."""
        return tuple(map(ParticipantId, self.store.children(self.znodes.participants())))

    def fragment_ids(self, networks: Iterable[NetworkId]) -> tuple[FragmentId, ...]:
        """The fragments of networks, by name within each network; one request."""
        names = tuple(networks)
        listed = self.store.children_all([self.znodes.fragments(name) for name in names])
        return tuple(
            FragmentId(network, FragmentName(fragment))
            for network, fragments in zip(names, listed, strict=True)
            for fragment in fragments
        )

    def read_of_fragments(
        self,
        kind: type[R],
        path: Callable[[NetworkId, FragmentName], str],
        networks: Iterable[NetworkId],
    ) -> dict[FragmentId, R]:
        """The record of one kind of every fragment of networks that has one; two requests."""
        ids = self.fragment_ids(networks)
        found = self.read_all(kind, [path(one.network, one.fragment) for one in ids])
        return {one: record for one, record in zip(ids, found, strict=True) if record is not None}
