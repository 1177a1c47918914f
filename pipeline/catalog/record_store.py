"""Typed reads of the catalog's records from the versioned store."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from brokers.versioned_store import Versioned, VersionedStore
from pipeline.catalog.codec import R, decode
from pipeline.errors import RefusedError
from pipeline.formats import NEWEST
from pipeline.ids import FragmentId, FragmentName, NetworkName
from pipeline.names import Znodes


@dataclass(frozen=True, slots=True)
class RecordStore:
    """The versioned store of a catalog with its paths. Thread-safe if the store is.

    No method sends one request per record: the number of requests is the same for one record and
    for many.

    Args:
        store: the versioned store.
        znodes: the paths in it.
        newest: the newest format that the program understands.
    """

    store: VersionedStore
    znodes: Znodes
    newest: int = NEWEST

    def decode(self, kind: type[R], found: Versioned, path: str) -> R:
        """A value that was read at a path, as a record."""
        return decode(kind, found.value, path, self.newest)

    def decode_optional(self, kind: type[R], found: Versioned | None, path: str) -> R | None:
        """The same; None if the path does not exist."""
        return None if found is None else self.decode(kind, found, path)

    def decode_all(
        self, kind: type[R], found: Mapping[str, Versioned | None], paths: Sequence[str]
    ) -> tuple[R | None, ...]:
        """The records at some of the paths that were read, in the order of `paths`."""
        return tuple(self.decode_optional(kind, found[path], path) for path in paths)

    def read(self, kind: type[R], path: str) -> R | None:
        """The record at a path; None if the path does not exist."""
        return self.decode_optional(kind, self.store.get(path), path)

    def read_all(self, kind: type[R], paths: Sequence[str]) -> tuple[R | None, ...]:
        """The records at many paths, in their order; one request."""
        return self.decode_all(kind, self.values(paths), paths)

    def values(self, paths: Sequence[str]) -> Mapping[str, Versioned | None]:
        """The values at many paths, read in their order; one request."""
        return dict(zip(paths, self.store.get_all(paths), strict=True))

    def paths_below(self, folder: str) -> tuple[str, ...]:
        """The paths directly below a path, sorted; one request."""
        return tuple(f"{folder}/{name}" for name in self.store.children(folder))

    def read_below(self, kind: type[R], folder: str) -> tuple[R, ...]:
        """The records directly below a path, by name; two requests."""
        found = self.read_all(kind, self.paths_below(folder))
        return tuple(record for record in found if record is not None)

    def fragment_ids(self, networks: Iterable[NetworkName]) -> tuple[FragmentId, ...]:
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
        path: Callable[[NetworkName, FragmentName], str],
        networks: Iterable[NetworkName],
    ) -> dict[FragmentId, R]:
        """The record of one kind of every fragment of networks that has one; two requests."""
        ids = self.fragment_ids(networks)
        found = self.read_all(kind, [path(one.network, one.fragment) for one in ids])
        return {one: record for one, record in zip(ids, found, strict=True) if record is not None}


def required(found: Versioned | None) -> Versioned:
    """A value that every catalog has.

    Raises:
        RefusedError: it is missing, since the catalog is not set up.
    """
    if found is None:
        raise RefusedError("the catalog is not set up", hint="`medusa up` sets it up.")
    return found
