"""Administration client of a schema registry: versions, deletions, compatibility levels, modes.

Nothing is cached. All calls are idempotent, and retried: a deletion that was done already is no
error. A scope is a subject, `:.name:` for a context, or None for the whole registry, whose
settings apply where no narrower scope has its own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal, TypeVar
from urllib.parse import quote, urlencode

from pipeline.errors import SchemaError
from pipeline.ids import SchemaId
from schemas.compatibility import Level
from schemas.entries import (
    SchemaUse,
    StoredVersion,
    context_at,
    context_of,
    named_in,
    qualified,
    stored,
)
from schemas.json_value import JsonObject, number_of, text_of
from schemas.outside import is_text
from schemas.referring import alone
from schemas.registry.config import Mode
from schemas.transport import Answer, NotARegistryError, Transport
from schemas.wire import may_exist

PAGE = 1000
"""Page size of requests; a registry may be configured to return fewer items."""
_FEW = 100
"""Smallest page size that any registry is configured with: a shorter page is the last one."""

_LEVEL = "compatibilityLevel"
"""The key of the level in answers."""

Version = int | Literal["latest"]
V = TypeVar("V")


class Administration:
    """Administrative requests; they raise `UnavailableError` when no registry answers in time.

    Requests that change something raise `RefusedError` if the registry's mode, rights or references
    do not allow it.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._context = context_at(transport.url)

    def full(self, subject: str) -> str:
        """A subject with its context; without one it is in the context of the address, if any."""
        return qualified(subject, self._context)

    def relative_name(self, subject: str, other: str) -> str:
        """The name, at this address, of a subject that a schema of another subject refers to."""
        return named_in(self._context, qualified(other, context_of(self.full(subject))))

    def subjects(self, prefix: str = "", *, deleted: bool = False) -> tuple[str, ...]:
        """The subjects with a prefix, sorted; `deleted`: including deleted ones.

        Without a prefix they are those of all contexts, or of the context of the address.
        """
        query = {**({"subjectPrefix": prefix} if prefix else {}), **_flag("deleted", deleted)}
        found, begin = self._pages("/subjects", query, str), self.full(prefix)
        return tuple(sorted(one for one in found if self.full(one).startswith(begin)))

    def contexts(self) -> tuple[str, ...]:
        """The contexts with schemas, each as the prefix of its subjects at this address.

        A registry without contexts has the default one.
        """
        try:
            found = self._pages("/contexts", {}, str)
        except NotARegistryError:
            found = []
        named = (context_of(f":{one}:") for one in found)
        return tuple(named_in(self._context, one) for one in dict.fromkeys(("", *named)))

    def version_numbers(self, subject: str, *, deleted: bool = False) -> tuple[int, ...]:
        """The versions of a subject, ascending; empty if there is no such subject."""
        path = f"/subjects/{quoted(subject)}/versions"
        return tuple(sorted(self._pages(path, _flag("deleted", deleted), int)))

    def version(
        self, subject: str, version: Version, *, deleted: bool = False, resolved: bool = False
    ) -> StoredVersion | None:
        """One version as it is stored; None if it does not exist.

        Args:
            subject: the subject.
            version: its number.
            deleted: whether to return a deleted one, too.
            resolved: whether to inline its references, so that it can be parsed alone.

        Raises:
            SchemaError: its references cannot be inlined.
        """
        found = self._version(subject, version, _flag("deleted", deleted))
        # Some registries search for a subject in other contexts too; that is another subject.
        if found is None or context_of(found.subject) != context_of(self.full(subject)):
            return None
        return replace(alone(found, self.referred) if resolved else found, subject=subject)

    def referred(self, use: SchemaUse) -> StoredVersion | None:
        """The version that a schema refers to, deleted or not; None if it does not exist.

        The subject is qualified with its context, whatever the context of the address.
        """
        subject = named_in(self._context, use.subject)
        return self._version(subject, use.version, _flag("deleted", enabled=True))

    def _version(
        self, subject: str, version: Version, query: Mapping[str, str]
    ) -> StoredVersion | None:
        path = f"/subjects/{quoted(subject)}/versions/{version}"
        answer = self._transport.ask("GET", _with(path, query))
        if answer is None:
            return None
        found = self._transport.object_of(answer, version=int, id=int, schema=str)
        use = SchemaUse(self.full(subject), number_of(found["version"]))
        return stored(found, use, number_of(found["id"]), f"{self._transport.place}, {use}")

    def by_id(self, schema_id: int, context: str = "") -> StoredVersion | None:
        """The schema with an id in a context; None if there is none.

        Subject and version are those of one of its uses, or the context and 0.
        """
        if not may_exist(SchemaId(schema_id)):
            return None
        query = {"subject": context} if context else {}
        answer = self._transport.ask("GET", _with(f"/schemas/ids/{schema_id}", query))
        if answer is None:
            return None
        found = self._transport.object_of(answer, schema=str)
        place = f"{self._transport.place}, schema id {schema_id}"
        return stored(found, SchemaUse(context, 0), schema_id, place)

    def referrers(self, subject: str, version: int, *, deleted: bool = False) -> tuple[int, ...]:
        """The ids of the schemas that refer to a version."""
        path = f"/subjects/{quoted(subject)}/versions/{version}/referencedby"
        return tuple(sorted(self._pages(path, _flag("deleted", deleted), int)))

    def uses(
        self, schema_id: int, context: str = "", *, deleted: bool = False
    ) -> tuple[SchemaUse, ...]:
        """The versions that have an id in a context."""
        if not may_exist(SchemaId(schema_id)):
            return ()
        query = {**({"subject": context} if context else {}), **_flag("deleted", deleted)}
        found = self._pages(f"/schemas/ids/{schema_id}/versions", query, dict)
        uses = [self._transport.part_of(one, subject=str, version=int) for one in found]
        return tuple(SchemaUse(text_of(u["subject"]), number_of(u["version"])) for u in uses)

    def delete_version(self, subject: str, version: int, *, permanent: bool = False) -> None:
        """Delete one version; permanently: only one that is soft-deleted."""
        path = f"/subjects/{quoted(subject)}/versions/{version}"
        self._transport.ask("DELETE", _with(path, _flag("permanent", permanent)))

    def delete_subject(self, subject: str, *, permanent: bool = False) -> None:
        """Delete all versions; permanently: only those that are soft-deleted."""
        path = f"/subjects/{quoted(subject)}"
        self._transport.ask("DELETE", _with(path, _flag("permanent", permanent)))

    def put(self, entry: StoredVersion) -> int:
        """Register a version under its own number and id, in mode IMPORT; returns its id."""
        body: JsonObject = {
            "schema": entry.text,
            "schemaType": entry.kind,
            "references": [dict(one) for one in entry.references],
            "version": entry.version,
            "id": entry.id,
        }
        if entry.metadata is not None:
            body["metadata"] = entry.metadata
        if entry.rule_set is not None:
            body["ruleSet"] = entry.rule_set
        answer = self._transport.ask("POST", f"/subjects/{quoted(entry.subject)}/versions", body)
        if answer is None:
            raise self._transport.not_a_registry("answers 404 to a registration")
        return number_of(self._transport.object_of(answer, id=int)["id"])

    def config(self, scope: str | None) -> JsonObject | None:
        """The configuration of a scope itself, in the registry's JSON; None if it has none."""
        answer = self._transport.ask("GET", _scoped("config", scope))
        if answer is None:
            return None
        found = self._transport.object_of(answer)
        # For a scope that has other settings only, registries return the default level as its own.
        in_force = None if scope is None else self._config_in_force(scope)
        if in_force is None or found.get(_LEVEL) == in_force.get(_LEVEL):
            return found
        return {key: value for key, value in found.items() if key != _LEVEL}

    def _config_in_force(self, scope: str) -> JsonObject | None:
        path = _with(_scoped("config", scope), _flag("defaultToGlobal", enabled=True))
        answer = self._transport.ask("GET", path)
        return None if answer is None else self._transport.object_of(answer)

    def set_config(self, scope: str | None, config: JsonObject) -> None:
        """Set the configuration of a scope; a value of None removes a setting."""
        # The key of the level differs between requests and answers.
        names = {_LEVEL: "compatibility"}
        body = {names.get(key, key): value for key, value in config.items()}
        self._must(self._transport.ask("PUT", _scoped("config", scope), body))

    def own_level(self, scope: str | None) -> Level | None:
        """The level of a scope itself; None if it has none."""
        return self._level(self.config(scope))

    def level_in_force(self, subject: str) -> Level:
        """The effective compatibility level of a subject."""
        found = self._level(self._config_in_force(subject))
        # Registries without this query parameter answer that there is none.
        return found or self.own_level(None) or Level.BACKWARD

    def set_level(self, scope: str | None, level: Level) -> None:
        """Set the level of a scope."""
        self.set_config(scope, {_LEVEL: level.value})

    def forget_config(self, scope: str | None) -> None:
        """Remove the configuration of a scope, including its level."""
        self._transport.ask("DELETE", _scoped("config", scope))

    def own_mode(self, scope: str | None) -> Mode | None:
        """The mode of a scope itself; None if it has none."""
        return self._mode(self._transport.ask("GET", _scoped("mode", scope)))

    def mode_in_force(self, subject: str) -> Mode:
        """The effective mode of a subject."""
        path = _with(_scoped("mode", subject), _flag("defaultToGlobal", enabled=True))
        return self._mode(self._transport.ask("GET", path)) or self.own_mode(None) or Mode.READWRITE

    def set_mode(self, scope: str | None, mode: Mode) -> None:
        """Set the mode of a scope, also if it contains schemas.

        Sent with `force`: without it a registry refuses IMPORT for a scope with schemas, and
        permanently removes soft-deleted ones.
        """
        path = _with(_scoped("mode", scope), _flag("force", enabled=True))
        self._must(self._transport.ask("PUT", path, {"mode": mode.value}))

    def forget_mode(self, scope: str) -> None:
        """Remove the mode of a subject or a context."""
        self._transport.ask("DELETE", _scoped("mode", scope))

    def _pages(self, path: str, query: Mapping[str, str], kind: type[V]) -> list[V]:
        """All items of a list, from a registry with or without pagination."""
        return list(self._items(path, query, kind))

    def _items(self, path: str, query: Mapping[str, str], kind: type[V]) -> Iterator[V]:
        seen: set[str] = set()
        while True:
            page = {**query, "offset": str(len(seen)), "limit": str(PAGE)}
            answer = self._transport.ask("GET", _with(path, page))
            items = [] if answer is None else self._transport.list_of(answer, kind)
            # A registry without pagination returns all items every time.
            new = [item for item in items if repr(item) not in seen]
            yield from new
            seen.update(repr(item) for item in new)
            if len(new) < _FEW or len(items) > PAGE:
                return

    def _level(self, found: JsonObject | None) -> Level | None:
        if found is None:
            return None
        word = found.get(_LEVEL)
        if word is None and found.keys() & {"error_code", "mode", "id"}:
            raise self._transport.not_a_registry("returns no compatibility level")
        if word is None:
            return None
        try:
            return Level(str(word).upper())
        except ValueError as error:
            what = f"has an unknown compatibility level: {word}"
            raise self._transport.not_a_registry(what) from error

    def _mode(self, answer: Answer | None) -> Mode | None:
        if answer is None:
            return None
        word = self._transport.object_of(answer).get("mode")
        if not isinstance(word, str):
            raise self._transport.not_a_registry("returns no mode")
        try:
            return Mode(str(word).upper())
        except ValueError as error:
            raise self._transport.not_a_registry(f"has an unknown mode: {word}") from error

    def _must(self, answer: Answer | None) -> None:
        if answer is None:
            raise self._transport.not_a_registry("answers 404 to a setting")


def quoted(subject: str) -> str:
    """A subject as a path segment, percent-encoded; a segment of dots would be a relative path.

    Raises:
        SchemaError: it is not a valid name of a subject.
    """
    if not subject:
        raise SchemaError("the name of a subject is empty")
    _require_text(subject)
    return quote(subject, safe="") if subject.strip(".") else "%2E" * len(subject)


def _scoped(what: str, scope: str | None) -> str:
    return f"/{what}" if scope is None else f"/{what}/{quoted(scope)}"


def _flag(name: str, enabled: bool) -> dict[str, str]:  # noqa: FBT001 - it is the value of the flag
    return {name: "true"} if enabled else {}


def _with(path: str, query: Mapping[str, str]) -> str:
    for word in query.values():
        _require_text(word)
    return f"{path}?{urlencode(query)}" if query else path


def _require_text(word: str) -> None:
    if not is_text(word):
        raise SchemaError(f"{word!r} cannot be written as UTF-8")
