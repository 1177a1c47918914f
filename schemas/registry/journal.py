"""Journal of a registry in a versioned store: reads records, follows changes, writes atomic steps.

Every step is a compare-and-set on the revision: of two servers that decide on the same revision
only one succeeds; the other reads the changes and decides again.
"""

from collections.abc import Iterable, Sequence

from brokers.versioned_store import (
    Create,
    Delete,
    NoSuchPathError,
    Operation,
    PathExistsError,
    Set,
    VersionConflictError,
    VersionedStore,
)
from pipeline.errors import RetryError
from pipeline.ids import ZnodePath
from schemas.registry.records import (
    FOLDERS,
    Revision,
    change_of,
    place_of,
    revision_bytes,
    revision_of,
    value_of,
)
from schemas.registry.state import Change, State, SubjectPut

_LOST_RACE = (VersionConflictError, PathExistsError, NoSuchPathError)
_ROUNDS_MAX = 50


class LostRaceError(RetryError):
    """Lost compare-and-set: another server changed the registry; read and decide again."""

    code = "lost-race"


class Journal:
    """A cached registry in a store. Not thread-safe."""

    def __init__(self, store: VersionedStore, root: ZnodePath) -> None:
        self._store = store
        self._root = root
        self._known = State()
        self._revision = Revision()
        self._version: int | None = None
        self._stored: frozenset[str] = frozenset()
        self._loaded = False

    def newest(self) -> State:
        """The state with every change that any client got acknowledged before this call.

        Raises:
            UnavailableError: the store does not answer.
            RetryError: other servers change it faster than it can be read.
        """
        self._store.sync()
        for _ in range(_ROUNDS_MAX):
            found = self._store.get(f"{self._root}/revision")
            revision = revision_of(found.value, "revision") if found else Revision()
            if self._loaded and revision.number == self._revision.number:
                self._version = found.version if found else None
                return self._known
            places = revision.since(self._revision.number) if self._loaded else None
            self._take(self._all() if places is None else places, anew=places is None)
            self._revision, self._loaded = revision, True
        raise RetryError("the schema registry is changed faster than it can be read")

    def write(self, changes: Sequence[Change]) -> State:
        """Write changes that were decided on the result of `newest`, in one atomic step.

        Raises:
            LostRaceError: nothing was changed: another server changed the registry first.
            UnavailableError: no answer; the step may have been executed.
            RefusedError: the step is too large for the store.
        """
        last = {place_of(change): change for change in changes}
        revision = self._revision.next(tuple(last))
        if self._version is None:
            self._make_folders()
        steps = (self._head(revision), *self._steps(last.items()))
        try:
            self._store.apply(steps)
        except _LOST_RACE as error:
            raise LostRaceError("another server changed the registry first") from error
        self._known = self._known.after(changes)
        self._revision = revision
        self._version = 0 if self._version is None else self._version + 1
        self._note(last.items())
        return self._known

    def _head(self, revision: Revision) -> Operation:
        path, value = f"{self._root}/revision", revision_bytes(revision)
        return Create(path, value) if self._version is None else Set(path, value, self._version)

    def _steps(self, changes: Iterable[tuple[str, Change]]) -> Iterable[Operation]:
        for place, change in changes:
            path, value = f"{self._root}/{place}", value_of(change)
            if value is not None:
                yield Set(path, value, None) if place in self._stored else Create(path, value)
            elif place in self._stored:
                yield Delete(path, None)

    def _note(self, changes: Iterable[tuple[str, Change]]) -> None:
        stored = set(self._stored)
        for place, change in changes:
            (stored.discard if value_of(change) is None else stored.add)(place)
        self._stored = frozenset(stored)

    def _make_folders(self) -> None:
        for name in FOLDERS:
            self._store.make_parents(f"{self._root}/{name}")

    def _all(self) -> tuple[str, ...]:
        return tuple(
            f"{folder}/{node}"
            for folder in FOLDERS
            for node in self._store.children(f"{self._root}/{folder}")
        )

    def _take(self, places: Sequence[str], *, anew: bool) -> None:
        """Read records again; contents are applied before records that refer to them."""
        known = State() if anew else self._known
        changes = self._read(places)
        subjects = [put for put in changes.values() if isinstance(put, SubjectPut)]
        guids = {f"contents/{one.guid}" for put in subjects for one in put.versions}
        loaded = {f"contents/{guid}" for guid in known.contents} | changes.keys()
        changes |= self._read(sorted(guids - loaded))  # added after the records were listed
        ordered = sorted(changes.items(), key=lambda at: FOLDERS.index(at[0].partition("/")[0]))
        self._known = known.after(change for _, change in ordered)
        if anew:
            self._stored = frozenset()
        self._note(ordered)

    def _read(self, places: Sequence[str]) -> dict[str, Change]:
        values = self._store.get_all([f"{self._root}/{place}" for place in places])
        return {
            place: change_of(place, found.value if found else None)
            for place, found in zip(places, values, strict=True)
        }
