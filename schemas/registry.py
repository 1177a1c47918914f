"""The registry's rules, over a store that compares before it sets.

* The same content under the same subject is the same version; under another subject it is a new
  version there, with the same id. Contents are equal as `canonical.content_key` says.
* A new version must fit the ones before it, as the subject's level asks.
* Ids and texts never change, so they are cached without end.
"""

from pipeline.errors import BrokenInvariantError, RetryError
from pipeline.ids import SchemaId, SchemaVersion
from schemas.avro import AvroSchema, parse
from schemas.cache import BoundedCache
from schemas.canonical import content_key
from schemas.compatibility import Level, check, looks_at_all
from schemas.records import BadLevelError, IncompatibleSchemaError, RegisteredSchema, check_subject
from schemas.store import LostRaceError, SchemaStore, SubjectState, VersionEntry

DEFAULT_LEVEL = Level.BACKWARD
LEVELS_OFFERED = (Level.BACKWARD, Level.NONE)
"""What a subject may be set to. The rules know all levels, the service does not offer them yet."""
ATTEMPTS_MAX = 100
"""Whoever loses a race loses it to somebody who got on; a hundred others at once are too many."""


class Registry:
    """Register schemas, find them, check them. Safe between threads if the store is."""

    def __init__(self, store: SchemaStore) -> None:
        self._store = store
        self._texts: BoundedCache[SchemaId, str] = BoundedCache(2048)

    def register(self, subject: str, text: str) -> RegisteredSchema:
        """Add a schema to a subject, or find that it is there already.

        Raises:
            SchemaError: the text is no schema, or the subject is no subject.
            IncompatibleSchemaError: it does not fit the versions before it.
            RetryError: too many others register at the same time.
        """
        name, schema = check_subject(subject), parse(text)
        key = content_key(schema)
        for _ in range(ATTEMPTS_MAX):
            state = self._store.subject(name)
            found = self._entry_of(state, key)
            if found is None:
                reasons = self._reasons(state, schema)
                if reasons:
                    raise IncompatibleSchemaError(subject, reasons)
                try:
                    found = self._store.add(state, schema.text, key)
                except LostRaceError:
                    continue
            return self._registered(state, found)
        raise RetryError("too many writers register at the same time", place=f"subject {subject}")

    def lookup(self, subject: str, text: str) -> RegisteredSchema | None:
        """The version of a subject that has this content; None if there is none.

        Raises:
            SchemaError: the text is no schema, or the subject is no subject.
        """
        state = self._store.subject(check_subject(subject))
        found = self._entry_of(state, content_key(parse(text)))
        return None if found is None else self._registered(state, found)

    def text(self, schema_id: SchemaId) -> str | None:
        """The text of a schema by its id; None if there is no such id."""
        text = self._texts.get(schema_id)
        if text is None:
            text = self._store.text(schema_id)
            if text is not None:
                self._texts.put(schema_id, text)
        return text

    def subjects(self) -> tuple[str, ...]:
        """All subjects, sorted."""
        return self._store.subjects()

    def versions(self, subject: str) -> tuple[RegisteredSchema, ...]:
        """All versions of a subject, oldest first; empty if there is no such subject."""
        state = self._store.subject(check_subject(subject))
        return tuple(self._registered(state, entry) for entry in state.versions)

    def version(self, subject: str, number: SchemaVersion | None) -> RegisteredSchema | None:
        """One version of a subject, the latest for None; None if there is no such version."""
        state = self._store.subject(check_subject(subject))
        for entry in reversed(state.versions):
            if number is None or entry.version == number:
                return self._registered(state, entry)
        return None

    def uses(self, schema_id: SchemaId) -> tuple[tuple[str, SchemaVersion], ...]:
        """Every subject and version that has this id, sorted."""
        return tuple(
            (subject, entry.version)
            for subject in self._store.subjects()
            for entry in self._store.subject(subject).versions
            if entry.id == schema_id
        )

    def check(
        self, subject: str, text: str, number: SchemaVersion | None = None
    ) -> tuple[str, ...]:
        """Why a schema could not be registered under a subject; empty: it could.

        Args:
            subject: it need not exist; then everything fits.
            text: the schema.
            number: compare with this version alone, by the subject's level.

        Raises:
            SchemaError: the text is no schema, or the subject is no subject.
        """
        state = self._store.subject(check_subject(subject))
        if number is not None:
            chosen = tuple(entry for entry in state.versions if entry.version == number)
            state = SubjectState(state.subject, chosen, state.stamp)
        return self._reasons(state, parse(text))

    def level(self, subject: str | None = None) -> Level:
        """The level in force for a subject, or the general one."""
        own = self.own_level(subject) if subject is not None else None
        return own or self._store.level(None) or DEFAULT_LEVEL

    def own_level(self, subject: str) -> Level | None:
        """The level that was set for just this subject."""
        return self._store.level(check_subject(subject))

    def set_level(self, subject: str | None, level: str | None) -> Level:
        """Set the level of a subject, or the general one for None; remove it with level None.

        Returns:
            The level in force now.

        Raises:
            BadLevelError: there is no such level, or it is not offered.
        """
        name = None if subject is None else check_subject(subject)
        if level is None:
            self._store.set_level(name, None)
        else:
            self._store.set_level(name, _offered(level))
        return self.level(subject)

    def _entry_of(self, state: SubjectState, key: str) -> VersionEntry | None:
        schema_id = self._store.id_of(key)
        return next((entry for entry in state.versions if entry.id == schema_id), None)

    def _reasons(self, state: SubjectState, schema: AvroSchema) -> tuple[str, ...]:
        level = self.level(state.subject)
        entries = state.versions if looks_at_all(level) else state.versions[-1:]
        previous = [parse(self._registered(state, entry).text) for entry in entries]
        return check(level, schema, previous)

    def _registered(self, state: SubjectState, entry: VersionEntry) -> RegisteredSchema:
        text = self.text(entry.id)
        if text is None:
            raise BrokenInvariantError(
                f"version {entry.version} has id {entry.id}, but there is no such schema",
                place=f"subject {state.subject}",
            )
        return RegisteredSchema(state.subject, entry.version, entry.id, text)


def _offered(level: str) -> Level:
    offered = {one.value: one for one in LEVELS_OFFERED}
    if level.upper() not in offered:
        raise BadLevelError(
            f"{level!r} is not a compatibility level that is offered here",
            hint=f"use one of {', '.join(offered)}.",
        )
    return offered[level.upper()]
