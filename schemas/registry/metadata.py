"""Metadata and rules of a schema. Pure.

Both belong to the content: the same text with other metadata is another schema, with another id.
Layout and defaults are those of Confluent's registry. Rules are stored and returned for clients,
which execute them; the registry does not.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from schemas.json_value import Json, JsonObject
from schemas.registry.names import java_order
from schemas.registry.refused import BadBodyError, BadRulesError

VERSION_PROPERTY: Final = "confluent:version"
RESERVED_PROPERTY: Final = "confluent:reserved"
_RULE_NAME_MAX: Final = 64
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_MODES: Final[Mapping[str, tuple[str, ...]]] = {
    "migrationRules": ("UPGRADE", "DOWNGRADE", "UPDOWN"),
    "domainRules": ("WRITE", "READ", "WRITEREAD"),
    "encodingRules": ("WRITE", "READ", "WRITEREAD"),
}
"""The lists of a rule set in their order, and the modes that their rules may have."""
_WORDS: Final = {
    "migrationRules": "Migration",
    "domainRules": "Domain",
    "encodingRules": "Encoding",
}
_ALL_MODES: Final = ("UPGRADE", "DOWNGRADE", "UPDOWN", "WRITE", "READ", "WRITEREAD")
_KINDS: Final = ("CONDITION", "TRANSFORM")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Metadata:
    """Tags of paths, properties, and which properties are sensitive; each sorted."""

    tags: tuple[tuple[str, tuple[str, ...]], ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    sensitive: tuple[str, ...] = ()

    def get(self, name: str) -> str | None:
        """The value of a property, or None."""
        at, exists = self._place(name)
        return self.properties[at][1] if exists else None

    def with_property(self, name: str, value: str | None) -> "Metadata":
        """The same with a property changed, or without it for None."""
        at, exists = self._place(name)
        if not exists and value is None:
            return self
        put = () if value is None else ((name, value),)
        properties = (*self.properties[:at], *put, *self.properties[at + exists :])
        return Metadata(self.tags, properties, self.sensitive)

    def _place(self, name: str) -> tuple[int, bool]:
        """The index of a property, or its insertion point, and whether it exists."""
        at = bisect_left(self.properties, java_order(name), key=lambda pair: java_order(pair[0]))
        return at, at < len(self.properties) and self.properties[at][0] == name

    @property
    def reserved(self) -> tuple[str, ...]:
        """Names of fields that no schema may use."""
        given = (self.get(RESERVED_PROPERTY) or "").split(",")
        return tuple(name.strip() for name in given if name.strip())


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; missing parts are None."""

    name: str | None
    doc: str | None = None
    kind: str = "TRANSFORM"
    mode: str = "WRITEREAD"
    type: str | None = None
    tags: tuple[str, ...] = ()
    params: tuple[tuple[str, str], ...] = ()
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The lists of rules, in the order of `_MODES`."""

    lists: tuple[tuple[Rule, ...], ...] = field(default=((), (), ()))
    enable_at: str | None = None


# --- from JSON --------------------------------------------------------------------------------


def metadata_of(value: Json) -> Metadata | None:
    """Parse metadata of a body; None for null.

    Raises:
        BadBodyError: it has the wrong form.
    """
    if value is None:
        return None
    given = _object(value, "metadata")
    tags = {
        path: _texts(some, f"metadata.tags.{path}")
        for path, some in _map(given.get("tags"), "metadata.tags").items()
    }
    properties = {
        name: _text(one, f"metadata.properties.{name}")
        for name, one in _map(given.get("properties"), "metadata.properties").items()
    }
    sensitive = _texts(given.get("sensitive"), "metadata.sensitive")
    return Metadata(_sorted_map(tags), _sorted_map(properties), sensitive)


def rules_of(value: Json) -> RuleSet | None:
    """Parse a rule set of a body; None for null.

    Raises:
        BadBodyError: it has the wrong form.
        BadRulesError: a rule is invalid.
    """
    if value is None:
        return None
    given = _object(value, "ruleSet")
    lists = tuple(
        tuple(_rule(one, f"ruleSet.{name}") for one in _list(given.get(name), f"ruleSet.{name}"))
        for name in _MODES
    )
    enable_at = given.get("enableAt")
    at = None if enable_at is None else _text(enable_at, "ruleSet.enableAt") or None
    found = RuleSet(lists, at)
    _check(found)
    return found


def _rule(value: Json, where: str) -> Rule:
    given = _object(value, where)

    def text(key: str) -> str | None:
        return None if given.get(key) is None else _text(given[key], f"{where}.{key}") or None

    kind, mode = text("kind") or "TRANSFORM", text("mode") or "WRITEREAD"
    for word, known in ((kind, _KINDS), (mode, _ALL_MODES)):
        if word not in known:
            raise BadBodyError(f"{where}: {word} is not one of {', '.join(known)}")
    params = {
        name: _text(one, f"{where}.params.{name}")
        for name, one in _map(given.get("params"), f"{where}.params").items()
    }
    name = given.get("name")
    return Rule(
        None if name is None else _text(name, f"{where}.name"),
        text("doc"),
        kind,
        mode,
        text("type"),
        _texts(given.get("tags"), f"{where}.tags"),
        _sorted_map(params),
        text("expr"),
        text("onSuccess"),
        text("onFailure"),
        given.get("disabled") is True,
    )


def _check(rules: RuleSet) -> None:
    seen: set[str | None] = set()
    for (key, modes), listed in zip(_MODES.items(), rules.lists, strict=True):
        for rule in listed:
            if rule.name in seen:
                raise BadRulesError(f"Found rule with duplicate name '{rule.name}'")
            seen.add(rule.name)
            _check_name(rule.name)
            if not rule.type:
                raise BadRulesError("Missing rule type")
            both = rule.mode in {"WRITEREAD", "UPDOWN"}
            if not both and any("," in (a or "") for a in (rule.on_success, rule.on_failure)):
                raise BadRulesError("Multiple actions only valid with WRITEREAD and UPDOWN")
            if rule.mode not in modes:
                raise BadRulesError(f"{_WORDS[key]} rules can only be {', '.join(modes)}")


def _check_name(name: str | None) -> None:
    if name is None:
        raise BadRulesError("Missing rule name")
    if not name:
        raise BadRulesError("Empty rule name")
    if len(name) > _RULE_NAME_MAX:
        raise BadRulesError("Rule name too long")
    if not _NAME.match(name):
        raise BadRulesError(f"Illegal initial character in rule name: {name}")
    if not _NAME.fullmatch(name):
        raise BadRulesError(f"Illegal character in rule name: {name}")


def _object(value: Json, where: str) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise BadBodyError(f"{where} is not an object")
    return value


def _map(value: Json, where: str) -> Mapping[str, Json]:
    return {} if value is None else _object(value, where)


def _list(value: Json, where: str) -> Sequence[Json]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise BadBodyError(f"{where} is not a list")
    return value


def _text(value: Json, where: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise BadBodyError(f"{where} is not a text")
    return value


def _texts(value: Json, where: str) -> tuple[str, ...]:
    return tuple(sorted({_text(one, where) for one in _list(value, where)}, key=java_order))


def _sorted_map(values: Mapping[str, _T]) -> tuple[tuple[str, _T], ...]:
    return tuple(sorted(values.items(), key=lambda item: java_order(item[0])))


# --- to JSON ----------------------------------------------------------------------------------


def metadata_json(metadata: Metadata) -> JsonObject:
    """The JSON of metadata, without empty parts."""
    return _filled(
        {
            "tags": {path: list(tags) for path, tags in metadata.tags},
            "properties": dict(metadata.properties),
            "sensitive": list(metadata.sensitive),
        }
    )


def rules_json(rules: RuleSet) -> JsonObject:
    """The JSON of a rule set, without empty parts."""
    listed = zip(_MODES, rules.lists, strict=True)
    made: JsonObject = {name: [_rule_json(rule) for rule in some] for name, some in listed}
    return _filled({**made, "enableAt": rules.enable_at})


def _rule_json(rule: Rule) -> JsonObject:
    made = _filled(
        {
            "name": rule.name,
            "doc": rule.doc,
            "kind": rule.kind,
            "mode": rule.mode,
            "type": rule.type,
            "tags": list(rule.tags),
            "params": dict(rule.params),
            "expr": rule.expr,
            "onSuccess": rule.on_success,
            "onFailure": rule.on_failure,
        }
    )
    return {**made, "disabled": rule.disabled}


def _filled(values: Mapping[str, Json]) -> JsonObject:
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


# --- input of the GUID ---------------------------------------------------------------------------


def metadata_bytes(metadata: Metadata) -> Iterator[bytes]:
    """The bytes of metadata that a content's GUID hashes, in order."""
    yield b"\x01"
    for path, tags in metadata.tags:
        yield from (text.encode() for text in (path, *tags))
    for pair in metadata.properties:
        yield from (text.encode() for text in pair)
    yield from (name.encode() for name in metadata.sensitive)


def rules_bytes(rules: RuleSet) -> Iterator[bytes]:
    """The bytes of a rule set that a content's GUID hashes, in order."""
    yield b"\x01"
    for rule in (rule for listed in rules.lists for rule in listed):
        pairs = (text for pair in rule.params for text in pair)
        first = (rule.name, rule.doc, rule.kind, rule.mode, rule.type, *rule.tags, *pairs)
        for text in (*first, rule.expr, rule.on_success, rule.on_failure):
            if text is not None:
                yield text.encode()
        if rule.disabled:
            yield b"\x01"


# --- merging ------------------------------------------------------------------------------------


def merged_metadata(*layers: Metadata | None) -> Metadata | None:
    """Merge layers of metadata, later ones take precedence; None if all are None."""
    given = [layer for layer in layers if layer is not None]
    if not given:
        return None
    tags = {path: some for layer in given for path, some in layer.tags}
    properties = {name: value for layer in given for name, value in layer.properties}
    sensitive = {name for layer in given for name in layer.sensitive}
    names = tuple(sorted(sensitive, key=java_order))
    return Metadata(_sorted_map(tags), _sorted_map(properties), names)


def merged_rules(*layers: RuleSet | None) -> RuleSet | None:
    """Merge layers of rules: a rule replaces an earlier one of its name."""
    given = [layer for layer in layers if layer is not None]
    if not given:
        return None
    merged = given[0]
    for layer in given[1:]:
        names = {rule.name for listed in layer.lists for rule in listed}
        lists = tuple(
            (*old, *new) for old, new in zip(without_rules(merged, names), layer.lists, strict=True)
        )
        merged = RuleSet(lists, layer.enable_at or merged.enable_at)
    return merged


def without_rules(rules: RuleSet, names: Collection[str | None]) -> tuple[tuple[Rule, ...], ...]:
    """The lists of a rule set without the rules of these names."""
    return tuple(tuple(rule for rule in listed if rule.name not in names) for listed in rules.lists)
