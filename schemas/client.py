"""Schema registry client: for ours, or any other with Confluent's REST interface.

Ids and registered schemas never change in a registry, so they are cached; negative answers are not.
A restored registry may have other ids: `lookup` always sends a request, and clears the caches if
the answer differs from the cached one.

Returned schemas have their references inlined, so they can be used alone. Arguments are schemas as
their authors wrote them, with references. `schemas.transport` sends requests and translates errors.
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
from schemas.compatibility import check, is_transitive
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
"""Subject, content key and references of a schema."""


class RegistryClient:
    """Lookup and registration of schemas. Thread-safe.

    Args:
        address: the registry's; user and password may be part of a URL.
        timeout_s: timeout of a call, including retries.
        transport: replaces the HTTP transport in tests.
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
        """Administrative requests; schemas that it deletes may remain in the client's caches."""
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
        """The schema of an id or a GUID; None if the registry does not have it.

        Raises:
            SchemaError: it is not Avro, or its references cannot be read.
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
        # Only the registry has the context of the references of a GUID: it inlines them.
        one = found if by_id else {**found, "references": []}
        schema = parse(self._text(one, f"schema {wire.words(handle)}"))
        self._schemas.put(path, schema)
        return schema

    def _text(self, found: JsonObject, what: str) -> str:
        """The text of a schema, with its references inlined."""
        # Not every registry returns the context of an id.
        one = stored(found, SchemaUse(self.admin.full(""), 0), 0, what)
        return alone(one, self._referred, what).text

    def _referred(self, use: SchemaUse) -> StoredVersion | None:
        found = self._uses.get(use)
        if found is None:
            found = self.admin.referred(use)
            if found is not None and found.use == use:  # differs for -1, the latest
                self._uses.put(use, found)
        return found

    def read(
        self, subject: str, schema_text: str, references: References = (), place: str = ""
    ) -> AvroSchema:
        """Parse a schema with its references.

        Args:
            subject: its context is that of references without one.
            schema_text: the schema as its author wrote it.
            references: the other schemas that it uses.
            place: its origin, for errors; empty: the subject.

        Raises:
            SchemaError: the text is no schema, or its references cannot be read.
        """
        one = proposed(self.admin.full(subject), schema_text, references)
        return read(one, self._referred, place or _place(subject))

    def lookup(
        self, subject: str, schema_text: str, references: References = ()
    ) -> SchemaId | None:
        """The id of this schema under a subject now; None if it is not registered there.

        Raises:
            SchemaError: the text is no schema, or its references cannot be read.
        """
        schema = self.read(subject, schema_text, references)
        key = (subject, content_key(schema), references)
        known = self._ids.get(key)
        found = self._post(key, schema, f"/subjects/{quoted(subject)}")
        if known is not None and found != known:
            self._clear_caches()
        return found

    def register(self, subject: str, schema_text: str, references: References = ()) -> SchemaId:
        """Register a schema under a subject; idempotent.

        Raises:
            SchemaError: the text is no schema, its references cannot be read, or the registry
                refuses it.
            IncompatibleSchemaError: it is incompatible with registered versions; has the reasons.
        """
        schema = self.read(subject, schema_text, references)
        key = (subject, content_key(schema), references)
        found = self._ids.get(key)
        if found is None:
            found = self._post(key, schema, f"/subjects/{quoted(subject)}/versions")
        if found is None:
            raise self._transport.not_a_registry("answers 404 to a registration")
        return found

    def check(self, subject: str, schema_text: str, references: References = ()) -> tuple[str, ...]:
        """Check compatibility; returns the reasons against a registration, empty if there are none.

        Raises:
            SchemaError: the text is no schema, or its references cannot be read.
        """
        schema = self.read(subject, schema_text, references)
        body = _body(schema, references)
        path = f"/compatibility/subjects/{quoted(subject)}/versions"
        try:
            # A transitive level concerns all versions; only this route compares with all.
            answer = self._transport.ask("POST", f"{path}?verbose=true", body)
        except NotARegistryError:
            answer = self._transport.ask("POST", f"{path}/latest?verbose=true", body)
        if answer is None:  # as some registries answer for a subject that does not exist yet
            return ()
        found = self._transport.object_of(answer, is_compatible=bool)
        if found["is_compatible"]:
            return ()
        messages = parts_of(found.get("messages")) or [
            "the registry answers that it is not compatible"
        ]
        return self._explained(subject, schema) or tuple(str(one) for one in messages)

    def _explained(self, subject: str, schema: AvroSchema) -> tuple[str, ...]:
        """The reasons of an incompatibility, with names of fields; empty if they are unknown."""
        try:
            level = self.admin.level_in_force(subject)
            latest = self.latest(subject)
            known = self.readable_versions(subject) if is_transitive(level) else (latest,)
            previous = [parse(one.text) for one in known if one is not None]
            return check(level, written_out(schema, _place(subject)), previous)
        except (SchemaError, UnavailableError):  # the registry may contain unreadable schemas
            return ()

    def latest(self, subject: str) -> RegisteredSchema | None:
        """The latest version of a subject; None if the subject does not exist."""
        return self._version(subject, "latest")

    def get(self, subject: str, version: SchemaVersion) -> RegisteredSchema | None:
        """One version of a subject; None if it does not exist."""
        return self._version(subject, str(version))

    def readable_versions(self, subject: str) -> tuple[RegisteredSchema, ...]:
        """The readable versions of a subject, oldest first; empty if it does not exist.

        Omits those that are not Avro, or whose references cannot be read.
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

    def _post(self, key: _Key, schema: AvroSchema, path: str) -> SchemaId | None:
        """Send a schema and cache its id; another request gets the reasons of a conflict."""
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

    def _clear_caches(self) -> None:
        """Clear all caches: in a restored registry any id may belong to another schema."""
        for cache in (self._schemas, self._uses, self._ids):
            cache.clear()

    def _is_elsewhere(self, subject: str, found: JsonObject) -> bool:
        """Whether an answer is about a subject of another context, which has ids of its own.

        Some registries search for a subject of the default context in all others, too.
        """
        named = found.get("subject")
        context = context_of(self.admin.full(subject))
        return isinstance(named, str) and context_of(named) != context

    def _version(self, subject: str, version: str) -> RegisteredSchema | None:
        answer = self._transport.ask("GET", f"/subjects/{quoted(subject)}/versions/{version}")
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
    """The request body of a schema."""
    listed: list[Json] = [asdict(one) for one in references]
    return {"schema": schema.text, **({"references": listed} if listed else {})}


def _place(subject: str) -> str:
    return f"subject {subject}"
