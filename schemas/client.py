"""A client of a schema registry: ours, or anyone's that speaks Confluent's REST interface.

Ids, and what was registered or found, never change in a registry, so they are cached; what does not
exist is asked for again each time. A registry that was restored is another one: `lookup` always
asks, and when it hears something else than before, all that was cached is forgotten.

A schema that refers to others is given with these written out: whoever has it needs nothing else to
read with it. It is taken as its author wrote it, with its references. How requests are sent and
what errors become is in `schemas.transport`.
"""

from contextlib import suppress
from dataclasses import asdict

import httpx

from pipeline.clock import Clock
from pipeline.errors import SchemaError, UnavailableError
from pipeline.ids import SchemaHandle, SchemaId, SchemaVersion, Subject
from schemas import wire
from schemas.administration import Administration, quoted
from schemas.avro import AvroSchema, parse
from schemas.cache import BoundedCache
from schemas.canonical import content_key
from schemas.compatibility import check, looks_at_all
from schemas.entries import SchemaUse, StoredVersion, context_of, proposed, stored
from schemas.json_value import Json, JsonObject, number_of, parts_of
from schemas.records import IncompatibleSchemaError, RegisteredSchema
from schemas.referring import alone, read, written_out
from schemas.registry.content import Reference
from schemas.transport import Address, ConflictError, NotARegistryError, Transport

_CACHE_ENTRIES_MAX = 2048
_WHOLE = "format=resolved"
References = tuple[Reference, ...]
_Key = tuple[str, str, References]
"""A subject, the key of a text's content, and what the text refers to."""


class RegistryClient:
    """Finds and registers schemas. Safe between threads.

    Args:
        address: the registry's; user and password may be part of a URL.
        timeout_s: for a whole call, with all its attempts.
        transport: another way to send requests, for tests.
        clock: for deadlines and pauses.

    Every method raises `UnavailableError` when no registry answers in time.
    """

    def __init__(
        self,
        address: Address,
        timeout_s: float = 10.0,
        *,
        transport: httpx.BaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._transport = Transport(address, timeout_s, transport=transport, clock=clock)
        self.admin = Administration(self._transport)
        """For whoever looks after the registry; what it deletes may stay in the caches here."""
        self._schemas: BoundedCache[str, AvroSchema] = BoundedCache(_CACHE_ENTRIES_MAX)
        self._uses: BoundedCache[SchemaUse, StoredVersion] = BoundedCache(_CACHE_ENTRIES_MAX)
        self._ids: BoundedCache[_Key, SchemaId] = BoundedCache(_CACHE_ENTRIES_MAX)

    @property
    def url(self) -> str:
        """The registry's address, without a password."""
        return self._transport.url

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def schema_of(self, handle: SchemaHandle) -> AvroSchema | None:
        """The schema of an id or a GUID; None if the registry says that it has no such one.

        Raises:
            SchemaError: it is not Avro, or what it refers to cannot be read.
        """
        if not wire.may_exist(handle):
            return None
        by_id = isinstance(handle, int)
        path = f"/schemas/ids/{handle}" if by_id else f"/schemas/guids/{handle}?{_WHOLE}"
        cached = self._schemas.get(path)
        if cached is not None:
            return cached
        answer = self._transport.ask("GET", path)
        if answer is None:
            return None
        found = self._transport.object_of(answer, schema=str)
        # Only the registry knows in which context the references of a GUID lie: it writes them out.
        one = found if by_id else {**found, "references": []}
        schema = parse(self._text(one, f"schema {wire.words(handle)}"))
        self._schemas.put(path, schema)
        return schema

    def _text(self, found: JsonObject, what: str) -> str:
        """The text of a schema, with what it refers to in its place."""
        # Not every registry says of an id in which context it found it.
        one = stored(found, SchemaUse(self.admin.full(""), 0), 0, what)
        return alone(one, self._referred, what).text

    def _referred(self, use: SchemaUse) -> StoredVersion | None:
        found = self._uses.get(use)
        if found is None:
            found = self.admin.referred(use)
            if found is not None and found.use == use:  # -1 stands for the latest
                self._uses.put(use, found)
        return found

    def read(
        self, subject: str, schema_text: str, references: References = (), place: str = ""
    ) -> AvroSchema:
        """A schema that may be registered under a subject, parsed with what it refers to.

        Args:
            subject: references without a context lie in its one.
            schema_text: the schema as its author wrote it.
            references: which other schemas it uses.
            place: where it was found, for errors; empty: the subject.

        Raises:
            SchemaError: the text is no schema, or what it refers to cannot be read.
        """
        one = proposed(self.admin.full(subject), schema_text, references)
        return read(one, self._referred, place or _place(subject))

    def lookup(
        self, subject: str, schema_text: str, references: References = ()
    ) -> SchemaId | None:
        """The id under which a subject has this schema now; None if it does not have it.

        Raises:
            SchemaError: the text is no schema, or what it refers to cannot be read.
        """
        schema = self.read(subject, schema_text, references)
        key = (subject, content_key(schema), references)
        known = self._ids.get(key)
        found = self._asked(key, schema, f"/subjects/{quoted(subject)}")
        if known is not None and found != known:
            self._forget()
        return found

    def register(self, subject: str, schema_text: str, references: References = ()) -> SchemaId:
        """Add a schema to a subject; the same id as before if it is there already.

        Raises:
            SchemaError: the text is no schema, what it refers to cannot be read, or the registry
                refuses it.
            IncompatibleSchemaError: it does not fit what is registered; with the reasons.
        """
        schema = self.read(subject, schema_text, references)
        key = (subject, content_key(schema), references)
        found = self._ids.get(key)
        if found is None:
            found = self._asked(key, schema, f"/subjects/{quoted(subject)}/versions")
        if found is None:
            raise self._transport.not_a_registry("answers 404 to a registration")
        return found

    def check(self, subject: str, schema_text: str, references: References = ()) -> tuple[str, ...]:
        """Why a schema could not be registered under a subject; empty: it fits.

        Raises:
            SchemaError: the text is no schema, or what it refers to cannot be read.
        """
        schema = self.read(subject, schema_text, references)
        body = _body(schema, references)
        path = f"/compatibility/subjects/{quoted(subject)}/versions"
        try:
            # A transitive level asks all versions, which only this question does.
            answer = self._transport.ask("POST", f"{path}?verbose=true", body)
        except NotARegistryError:
            answer = self._transport.ask("POST", f"{path}/latest?verbose=true", body)
        if answer is None:  # some registries say so of a subject that does not exist yet
            return ()
        found = self._transport.object_of(answer, is_compatible=bool)
        if found["is_compatible"]:
            return ()
        messages = parts_of(found.get("messages")) or [
            "the registry says that it is not compatible"
        ]
        return self._explained(subject, schema) or tuple(str(one) for one in messages)

    def _explained(self, subject: str, schema: AvroSchema) -> tuple[str, ...]:
        """Why a schema does not fit, with the names of fields; empty if we cannot tell."""
        try:
            level = self.admin.level_in_force(subject)
            latest = self.latest(subject)
            known = self.readable_versions(subject) if looks_at_all(level) else (latest,)
            previous = [parse(one.text) for one in known if one is not None]
            return check(level, written_out(schema, _place(subject)), previous)
        except (SchemaError, UnavailableError):  # it may hold what we cannot read
            return ()

    def latest(self, subject: str) -> RegisteredSchema | None:
        """The latest version of a subject; None if there is no such subject."""
        return self._version(subject, "latest")

    def get(self, subject: str, version: SchemaVersion) -> RegisteredSchema | None:
        """One version of a subject; None if there is no such subject or version."""
        return self._version(subject, str(version))

    def readable_versions(self, subject: str) -> tuple[RegisteredSchema, ...]:
        """The versions of a subject, oldest first; empty if there is no such subject.

        Without those that are not Avro, or refer to what cannot be read.
        """
        answer = self._transport.ask("GET", f"/subjects/{quoted(subject)}/versions")
        numbers = [] if answer is None else self._transport.list_of(answer, int)
        found: list[RegisteredSchema | None] = []
        for number in sorted(numbers):
            with suppress(SchemaError):
                found.append(self.get(subject, SchemaVersion(number)))
        return tuple(one for one in found if one is not None)

    def subjects(self) -> tuple[str, ...]:
        """All subjects, sorted."""
        answer = self._transport.ask("GET", "/subjects")
        return tuple(sorted([] if answer is None else self._transport.list_of(answer, str)))

    def _asked(self, key: _Key, schema: AvroSchema, path: str) -> SchemaId | None:
        """Send a schema; a conflict is told with its reasons, which another call gives."""
        subject, _, references = key
        try:
            answer = self._transport.ask("POST", path, _body(schema, references))
        except ConflictError as error:
            reasons = self.check(subject, schema.text, references) or (error.message,)
            raise IncompatibleSchemaError(subject, reasons) from error
        if answer is None:
            return None
        found = self._transport.object_of(answer, id=int)
        if self._is_elsewhere(subject, found):
            return None
        schema_id = SchemaId(number_of(found["id"]))
        self._ids.put(key, schema_id)
        return schema_id

    def _forget(self) -> None:
        """Forget everything: the registry is not what it was, so any id may mean another schema."""
        for cache in (self._schemas, self._uses, self._ids):
            cache.clear()

    def _is_elsewhere(self, subject: str, found: JsonObject) -> bool:
        """Whether an answer is about a subject of another context, in which ids mean others.

        Some registries look for a subject of the default context in all the others, too.
        """
        named = found.get("subject")
        wanted = context_of(self.admin.full(subject))
        return isinstance(named, str) and context_of(named) != wanted

    def _version(self, subject: str, version: str) -> RegisteredSchema | None:
        path = f"/subjects/{quoted(subject)}/versions/{version}"
        answer = self._transport.ask("GET", path)
        if answer is None:
            return None
        found = self._transport.object_of(answer, version=int, id=int, schema=str)
        if self._is_elsewhere(subject, found):
            return None
        number, schema_id = (
            SchemaVersion(number_of(found["version"])),
            SchemaId(number_of(found["id"])),
        )
        text = self._text(found, f"subject {subject}, version {number}")
        return RegisteredSchema(Subject(subject), number, schema_id, text)


def _body(schema: AvroSchema, references: References) -> JsonObject:
    """A schema as a request holds it."""
    listed: list[Json] = [asdict(one) for one in references]
    return {"schema": schema.text, **({"references": listed} if listed else {})}


def _place(subject: str) -> str:
    return f"subject {subject}"
