"""What whoever looks after a registry asks of it: all that it keeps, deletions, levels and modes.

Nothing is cached here. All calls can be repeated, and are, while that may help: a deletion that was
done already is no error. A scope is a subject, `:.name:` for a context, or None for what holds
where nothing else is said.
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
"""Items asked for at once; a registry may be set up to give fewer."""
_FEW = 100
"""No registry is set up to give fewer at once than this: with fewer, a list has ended."""

_LEVEL = "compatibilityLevel"
"""Under this name answers tell the level."""

Version = int | Literal["latest"]
V = TypeVar("V")


class Administration:
    """Every method raises `UnavailableError` when no registry answers in time.

    Those that change something raise `RefusedError` where the registry's mode, rights or references
    do not allow it.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._context = context_at(transport.url)

    def full(self, subject: str) -> str:
        """A subject with its context, of which the address may name one for all without."""
        return qualified(subject, self._context)

    def beside(self, subject: str, other: str) -> str:
        """How another subject is named here that a schema of a subject refers to."""
        return named_in(self._context, qualified(other, context_of(self.full(subject))))

    def subjects(self, prefix: str = "", *, deleted: bool = False) -> tuple[str, ...]:
        """The subjects that begin with a prefix, sorted; with those that are deleted, or without.

        Without a prefix they are those of all contexts, or of the one that the address names.
        """
        query = {**({"subjectPrefix": prefix} if prefix else {}), **_flag("deleted", deleted)}
        found, begin = self._pages("/subjects", query, str), self.full(prefix)
        return tuple(sorted(one for one in found if self.full(one).startswith(begin)))

    def contexts(self) -> tuple[str, ...]:
        """The contexts that hold schemas, as what names of theirs begin with here.

        A registry that knows none has the default one.
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
        """One version as it is stored; None if there is none.

        Args:
            subject: whose.
            version: its number.
            deleted: whether one that is deleted counts.
            resolved: with what it refers to in its place, so that it can be read alone.

        Raises:
            SchemaError: it is to be resolved, and cannot be.
        """
        found = self._version(subject, version, _flag("deleted", deleted))
        # Some registries look for a subject in other contexts too; that is not the one meant.
        if found is None or context_of(found.subject) != context_of(self.full(subject)):
            return None
        return replace(alone(found, self.referred) if resolved else found, subject=subject)

    def referred(self, use: SchemaUse) -> StoredVersion | None:
        """What a schema refers to, deleted or not; None if there is no such version.

        The subject is named in full, whatever context the address names.
        """
        subject = named_in(self._context, use.subject)
        return self._version(subject, use.version, _flag("deleted", wanted=True))

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
        """What an id stands for in a context; None if it has no such id.

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
        """Delete one version, unless that was done; permanently: only what is deleted."""
        path = f"/subjects/{quoted(subject)}/versions/{version}"
        self._transport.ask("DELETE", _with(path, _flag("permanent", permanent)))

    def delete_subject(self, subject: str, *, permanent: bool = False) -> None:
        """Delete all versions, unless that was done; permanently: only what is deleted."""
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
        """What a scope says itself, as the registry writes it; None if it says nothing."""
        answer = self._transport.ask("GET", _scoped("config", scope))
        if answer is None:
            return None
        found = self._transport.object_of(answer)
        # Of a scope that says other things alone, registries tell the usual level as its own.
        in_force = None if scope is None else self._config_in_force(scope)
        if in_force is None or found.get(_LEVEL) == in_force.get(_LEVEL):
            return found
        return {key: value for key, value in found.items() if key != _LEVEL}

    def _config_in_force(self, scope: str) -> JsonObject | None:
        path = _with(_scoped("config", scope), _flag("defaultToGlobal", wanted=True))
        answer = self._transport.ask("GET", path)
        return None if answer is None else self._transport.object_of(answer)

    def set_config(self, scope: str | None, config: JsonObject) -> None:
        """Say what a scope is to say; a value of None takes back what it said."""
        # The name of the level is another one in a request than in an answer.
        names = {_LEVEL: "compatibility"}
        body = {names.get(key, key): value for key, value in config.items()}
        self._must(self._transport.ask("PUT", _scoped("config", scope), body))

    def own_level(self, scope: str | None) -> Level | None:
        """The level that a scope has itself; None if it has none."""
        return self._level(self.config(scope))

    def level_in_force(self, subject: str) -> Level:
        """The level that a new version of a subject has to keep."""
        found = self._level(self._config_in_force(subject))
        # Registries that know of no such question say that there is none.
        return found or self.own_level(None) or Level.BACKWARD

    def set_level(self, scope: str | None, level: Level) -> None:
        """Set the level of a scope."""
        self.set_config(scope, {_LEVEL: level.value})

    def forget_config(self, scope: str | None) -> None:
        """Take back all that a scope says, its level too."""
        self._transport.ask("DELETE", _scoped("config", scope))

    def own_mode(self, scope: str | None) -> Mode | None:
        """The mode that a scope has itself; None if it has none."""
        return self._mode(self._transport.ask("GET", _scoped("mode", scope)))

    def mode_in_force(self, subject: str) -> Mode:
        """What may be written under a subject."""
        path = _with(_scoped("mode", subject), _flag("defaultToGlobal", wanted=True))
        found = self._mode(self._transport.ask("GET", path))
        return found or self.own_mode(None) or Mode.READWRITE

    def set_mode(self, scope: str | None, mode: Mode) -> None:
        """Set the mode of a scope, also where it holds schemas.

        It is forced: a registry that is asked politely for IMPORT refuses where schemas are, and
        removes for good what was only deleted.
        """
        path = _with(_scoped("mode", scope), _flag("force", wanted=True))
        self._must(self._transport.ask("PUT", path, {"mode": mode.value}))

    def forget_mode(self, scope: str) -> None:
        """Take back the mode of a subject or a context."""
        self._transport.ask("DELETE", _scoped("mode", scope))

    def _pages(self, path: str, query: Mapping[str, str], kind: type[V]) -> list[V]:
        """All items of a list that a registry gives by pages, or at once if it knows no pages."""
        return list(self._items(path, query, kind))

    def _items(self, path: str, query: Mapping[str, str], kind: type[V]) -> Iterator[V]:
        seen: set[str] = set()
        while True:
            page = {**query, "offset": str(len(seen)), "limit": str(PAGE)}
            answer = self._transport.ask("GET", _with(path, page))
            items = [] if answer is None else self._transport.list_of(answer, kind)
            # A registry without pages gives everything again and again.
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
            raise self._transport.not_a_registry("says no compatibility level")
        if word is None:
            return None
        try:
            return Level(str(word).upper())
        except ValueError as error:
            what = f"has a compatibility level that is not known here: {word}"
            raise self._transport.not_a_registry(what) from error

    def _mode(self, answer: Answer | None) -> Mode | None:
        if answer is None:
            return None
        found = self._transport.object_of(answer)
        word = found.get("mode")
        if not isinstance(word, str):
            raise self._transport.not_a_registry("says no mode")
        try:
            return Mode(str(word).upper())
        except ValueError as error:
            raise self._transport.not_a_registry(f"has an unknown mode: {word}") from error

    def _must(self, answer: Answer | None) -> None:
        if answer is None:
            raise self._transport.not_a_registry("answers 404 to a setting")


def quoted(subject: str) -> str:
    """A subject as a part of a path; dots alone would mean another place.

    Raises:
        SchemaError: it is no name of a subject.
    """
    if not subject:
        raise SchemaError("a subject without a name cannot be asked for")
    _require_text(subject)
    return quote(subject, safe="") if subject.strip(".") else "%2E" * len(subject)


def _scoped(what: str, scope: str | None) -> str:
    return f"/{what}" if scope is None else f"/{what}/{quoted(scope)}"


def _flag(name: str, wanted: bool) -> dict[str, str]:  # noqa: FBT001 - the value is what it is about
    return {name: "true"} if wanted else {}


def _with(path: str, query: Mapping[str, str]) -> str:
    for word in query.values():
        _require_text(word)
    return f"{path}?{urlencode(query)}" if query else path


def _require_text(word: str) -> None:
    if not is_text(word):
        raise SchemaError(f"{word!r} is no text that could be asked for")
