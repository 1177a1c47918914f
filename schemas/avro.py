"""Strict parser of Avro schemas, with the path of each error.

It is stricter than Java's parser only where a mistake is certain: a duplicate key in an object. A
logical type that does not fit its type is ignored, as the specification demands. A union's default
may fit any branch (Avro 1.12).
"""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, NoReturn

from pipeline.errors import SchemaError
from schemas.defaults import Defaults
from schemas.json_value import Json, JsonObject
from schemas.naming import NAMED, Names, qualified, spelled
from schemas.nesting import MAX_DEPTH, MAX_JSON_DEPTH, nested_deeper, types_deeper
from schemas.redefining import definitions, meaning_of
from schemas.types import (
    INT_MAX,
    MISSING,
    PRIMITIVES,
    ArrayType,
    AvroType,
    EnumType,
    Field,
    FixedType,
    Kind,
    Logical,
    MapType,
    NamedType,
    Primitive,
    RecordType,
    Reference,
    ResolvedType,
    UnionType,
    shown,
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TYPE_PARTS = {"type", "fields", "items", "values"}
"""Attributes whose values are types."""
_ORDERS = ("ascending", "descending", "ignore")
_LOGICAL_BASE: Mapping[Logical, Kind] = {
    Logical.UUID: Kind.STRING,
    Logical.DATE: Kind.INT,
    Logical.TIME_MILLIS: Kind.INT,
    Logical.TIME_MICROS: Kind.LONG,
    Logical.TIMESTAMP_MILLIS: Kind.LONG,
    Logical.TIMESTAMP_MICROS: Kind.LONG,
    Logical.LOCAL_TIMESTAMP_MILLIS: Kind.LONG,
    Logical.LOCAL_TIMESTAMP_MICROS: Kind.LONG,
}


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A parsed schema. Equality and hash use its text and the schemas that it uses (`key`).

    Args:
        text: the schema as compact JSON, keys in the author's order; a second definition of a type
            is replaced by its name.
        root: its type tree.
        names: every named type that it defines or may use, by full name.
        used: the schemas whose types it may use, dependencies first.
    """

    text: str = field(compare=False)
    root: ResolvedType = field(compare=False)
    names: Mapping[str, NamedType] = field(compare=False, repr=False)
    used: tuple["AvroSchema", ...] = field(default=(), compare=False, repr=False)
    key: bytes = field(init=False, repr=False)
    """A digest: comparing schemas that use each other recursively takes unbounded time."""

    def __post_init__(self) -> None:
        digest = hashlib.sha256(self.text.encode())
        for one in self.used:
            digest.update(one.key)
        object.__setattr__(self, "key", digest.digest())

    @property
    def value(self) -> Any:
        """The schema as a fresh JSON value: a string, a list or a dict."""
        return json.loads(self.text)

    @property
    def full_name(self) -> str:
        """The root's full name; for a type without a name its kind: `string`, `array`."""
        if isinstance(self.root, RecordType | EnumType | FixedType):
            return self.root.name
        return self.root.kind.value

    def resolve(self, avro_type: AvroType) -> ResolvedType:
        """The type itself, or the one that a reference names."""
        return self.names[avro_type.name] if isinstance(avro_type, Reference) else avro_type


class UnknownTypeError(SchemaError):
    """A schema refers to a type that neither it nor the schemas it uses define before."""


@lru_cache(maxsize=1024)
def parse(text: str, used: tuple[AvroSchema, ...] = ()) -> AvroSchema:
    """Parse a schema text.

    Args:
        text: the schema.
        used: schemas whose named types it may use, dependencies first.

    Raises:
        SchemaError: the text is not JSON or not an Avro schema; `place` is the path inside the
            schema, such as `/fields/speed/type`.
    """
    value = _load(text)
    parser = _Parser(_defined_by(used), used)
    root = parser.type_at(value, "", "", 0)
    if isinstance(root, Reference):
        root = parser.names[root.name]
    if used and types_deeper(root, parser.names, MAX_DEPTH):
        _fail("/", f"types are nested more than {MAX_DEPTH} deep, with those of the schemas used")
    parser.check_defaults()
    return AvroSchema(_compact(value, parser.repeated), root, MappingProxyType(parser.names), used)


def _compact(value: Json, repeated: Mapping[int, str]) -> str:
    compact = json.dumps(
        _without(value, repeated) if repeated else value, separators=(",", ":"), ensure_ascii=False
    )
    try:
        compact.encode()
    except UnicodeEncodeError:
        _fail("/", "the text has half of a surrogate pair (\\ud800 to \\udfff)")
    return compact


def _without(value: Json, repeated: Mapping[int, str]) -> Json:
    """A schema with names instead of repeated definitions."""
    if id(value) in repeated:
        return repeated[id(value)]
    if isinstance(value, dict):
        return {key: _without(one, repeated) for key, one in value.items()}
    return [_without(one, repeated) for one in value] if isinstance(value, list) else value


def _defined_by(used: tuple[AvroSchema, ...]) -> dict[str, NamedType]:
    names: dict[str, NamedType] = {}
    for one in used:
        for name, defined in one.names.items():
            known = names.setdefault(name, defined)
            if known is not defined and known != defined:
                _fail("/", f"{name} is defined by two of the schemas that this one refers to")
    return names


def _fail(path: str, message: str, hint: str = "") -> NoReturn:
    raise SchemaError(message, place=path or "/", hint=hint)


def _load(text: str) -> Json:
    def unique(pairs: list[tuple[str, Json]]) -> JsonObject:
        found = dict(pairs)
        if len(found) != len(pairs):
            counts = Counter(name for name, _ in pairs)
            twice = next(name for name, count in counts.items() if count > 1)
            _fail("/", f"the key {twice!r} stands twice in one object")
        return found

    def finite(word: str) -> float:
        number = float(word)
        if not math.isfinite(number):
            _fail("/", f"{word} is not a JSON number")
        return number

    try:
        value: Json = json.loads(
            text, object_pairs_hook=unique, parse_float=finite, parse_constant=finite
        )
    except json.JSONDecodeError as error:
        hint = "" if text.strip() else "the text is empty."
        raise SchemaError(
            f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})",
            place="/",
            hint=hint,
        ) from error
    except (RecursionError, ValueError) as error:
        raise SchemaError("not a JSON text of reasonable size", place="/") from error
    if nested_deeper(value, MAX_JSON_DEPTH):
        _fail("/", f"the text is nested more than {MAX_JSON_DEPTH} deep")
    return value


class _Parser:
    """Parser of one schema text. Defaults are checked last, when all types are defined.

    Args:
        names: the types of the schemas that are used, by full name; the text's own are added.
        used: those schemas.
    """

    def __init__(self, names: dict[str, NamedType], used: tuple[AvroSchema, ...]) -> None:
        self.names = names
        self._scope = Names(names)
        self._used = used
        self._defined: dict[str, JsonObject] = {}
        self.repeated: dict[int, str] = {}
        """Repeated definitions, by identity, with the names that they define again."""
        self._defaults: list[tuple[str, AvroType, Json]] = []

    def type_at(self, value: Json, path: str, namespace: str, depth: int) -> AvroType:
        """Parse the type of a JSON value at a path, inside a namespace."""
        if depth > MAX_DEPTH:
            _fail(path, f"types are nested more than {MAX_DEPTH} deep")
        if isinstance(value, str):
            return self._by_name(value, path, namespace)
        if isinstance(value, list):
            return self._union(value, path, namespace, depth)
        if isinstance(value, dict):
            return self._object(value, path, namespace, depth)
        _fail(path, f"a type is a name, a list or an object, not {shown(value)}")

    def _by_name(self, name: str, path: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return Primitive(PRIMITIVES[name])
        full = self._scope.meant(name, namespace, path)
        if full is not None:
            return Reference(full)
        if name in NAMED | {"array", "map"}:
            _fail(path, f"{name} needs an object", f'write {{"type": "{name}", ...}}.')
        defined = ", ".join(sorted({*self.names, *self._scope.unfinished})) or "none"
        raise UnknownTypeError(
            f"unknown type {name!r} (types defined before this: {defined})", place=path or "/"
        )

    def _union(self, value: list[Json], path: str, namespace: str, depth: int) -> UnionType:
        branches: list[AvroType] = []
        seen: set[str] = set()
        for index, item in enumerate(value):
            at = f"{path}/{index}"
            branch = self.type_at(item, at, namespace, depth + 1)
            if isinstance(branch, UnionType):
                _fail(at, "a union directly inside a union")
            named = isinstance(branch, Reference | RecordType | EnumType | FixedType)
            key = branch.name if named else branch.kind.value  # type: ignore[union-attr]
            if key in seen:
                _fail(at, f"{key} stands twice in the union")
            seen.add(key)
            branches.append(branch)
        return UnionType(tuple(branches))

    def _object(self, value: JsonObject, path: str, namespace: str, depth: int) -> AvroType:
        word = value.get("type")
        if "type" not in value:
            _fail(path, 'an object without "type"')
        if not isinstance(word, str):
            _fail(
                f"{path}/type",
                "the type of an object must be a word",
                "leave out the outer object, or one pair of braces.",
            )
        self._require_shallow(value, path)
        if word in NAMED:
            return self._named(word, value, path, namespace, depth)
        if word == "array":
            self._need(value, "items", path, word)
            return ArrayType(self.type_at(value["items"], f"{path}/items", namespace, depth + 1))
        if word == "map":
            self._need(value, "values", path, word)
            return MapType(self.type_at(value["values"], f"{path}/values", namespace, depth + 1))
        if word in PRIMITIVES:
            return _primitive(PRIMITIVES[word], value)
        return self._by_name(word, f"{path}/type", namespace)

    @staticmethod
    def _require_shallow(value: JsonObject, path: str) -> None:
        """Check the nesting depth of attributes of a type or a field."""
        for name, one in value.items():
            if name not in _TYPE_PARTS and nested_deeper(one, MAX_DEPTH):
                _fail(f"{path}/{name}", f"the value is nested more than {MAX_DEPTH} deep")

    @staticmethod
    def _need(value: JsonObject, key: str, path: str, what: str) -> Json:
        if key not in value:
            _fail(path, f'{what} without "{key}"')
        return value[key]

    def _named(
        self, word: str, value: JsonObject, path: str, namespace: str, depth: int
    ) -> NamedType | Reference:
        name, own = self._full_name(value, path, namespace, word)
        if name in self._scope.unfinished:
            _fail(f"{path}/name", f"{name} is defined inside itself")
        if name in self.names:
            made = self._made(word, name, own, value, path, depth)
            self._require_same(made, value, path)
            self._scope.require_spelling(name, namespace, f"{path}/name")
            self.repeated[id(value)] = spelled(name, namespace)
            return Reference(name)
        self._scope.begin(name, f"{path}/name")
        made = self._made(word, name, own, value, path, depth)
        self._scope.end(name)
        self.names[name] = made
        self._defined[name] = value
        return made

    def _require_same(self, made: NamedType, value: JsonObject, path: str) -> None:
        """Check that a repeated definition of a type is equivalent to the first."""
        before = self._defined.get(made.name) or self._defined_in_used[made.name]
        if meaning_of(before, self.names[made.name]) != meaning_of(value, made):
            _fail(f"{path}/name", f"{made.name} is defined twice, in different ways")

    @cached_property
    def _defined_in_used(self) -> Mapping[str, JsonObject]:
        """The first definition of each named type in the used schemas, by full name."""
        found: dict[str, JsonObject] = {}
        for one in self._used:
            for value, named in definitions(one.value, one.root):
                found.setdefault(named.name, value)
        return found

    def _made(
        self, word: str, name: str, own: str, value: JsonObject, path: str, depth: int
    ) -> NamedType:
        aliases = tuple(qualified(one, own) for one in _aliases(value, path, dotted=True))
        if word == "enum":
            return self._enum(name, aliases, value, path)
        if word == "fixed":
            return self._fixed(name, aliases, value, path)
        return self._record(name, aliases, value, path, own, depth)

    def _full_name(
        self, value: JsonObject, path: str, namespace: str, word: str
    ) -> tuple[str, str]:
        name = self._need(value, "name", path, word)
        if not isinstance(name, str):
            _fail(f"{path}/name", f"a name is a string, not {shown(name)}")
        given = value.get("namespace", namespace)
        if not isinstance(given, str):
            _fail(f"{path}/namespace", f"a namespace is a string, not {shown(given)}")
        full = name if "." in name or not given else f"{given}.{name}"
        _name(full, f"{path}/name", dotted=True)
        own, _, short = full.rpartition(".")
        if short in PRIMITIVES:
            _fail(f"{path}/name", f"{short!r} is the name of a built-in type")
        return full, own

    def _enum(self, name: str, aliases: tuple[str, ...], value: JsonObject, path: str) -> EnumType:
        symbols = self._need(value, "symbols", path, f"enum {name}")
        if not isinstance(symbols, list):
            _fail(f"{path}/symbols", f"symbols are a list of strings, not {shown(symbols)}")
        seen: dict[str, None] = {}
        for index, symbol in enumerate(symbols):
            at = f"{path}/symbols/{index}"
            word = _name(symbol, at)
            if word in seen:
                _fail(at, f"the symbol {word} stands twice")
            seen[word] = None
        default = value.get("default")
        if default is not None and default not in symbols:
            _fail(
                f"{path}/default",
                f"{shown(default)} is not a symbol of {name} ({', '.join(seen)})",
            )
        return EnumType(name, aliases, tuple(seen), default if default is None else str(default))

    def _fixed(
        self, name: str, aliases: tuple[str, ...], value: JsonObject, path: str
    ) -> FixedType:
        size = self._need(value, "size", path, f"fixed {name}")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= INT_MAX:
            _fail(f"{path}/size", f"a size is a whole number of bytes, not {shown(size)}")
        logical, precision, scale = decimal_parameters(value, size)
        return FixedType(name, aliases, size, logical, precision, scale)

    def _record(
        self,
        name: str,
        aliases: tuple[str, ...],
        value: JsonObject,
        path: str,
        own: str,
        depth: int,
    ) -> RecordType:
        listed = self._need(value, "fields", path, f"record {name}")
        if not isinstance(listed, list):
            _fail(f"{path}/fields", f"fields are a list of objects, not {shown(listed)}")
        fields: dict[str, Field] = {}
        for index, item in enumerate(listed):
            made = self._field(item, f"{path}/fields", index, own, depth)
            if made.name in fields:
                _fail(f"{path}/fields/{made.name}", f"{name} has two fields of this name")
            fields[made.name] = made
        doc = value.get("doc")
        words = doc if isinstance(doc, str) else ""
        return RecordType(name, aliases, tuple(fields.values()), words)

    def _field(self, item: Json, path: str, index: int, own: str, depth: int) -> Field:
        if not isinstance(item, dict):
            _fail(f"{path}/{index}", f"a field is an object, not {shown(item)}")
        name = _name(self._need(item, "name", f"{path}/{index}", "a field"), f"{path}/{index}/name")
        at = f"{path}/{name}"
        self._require_shallow(item, at)
        self._need(item, "type", at, "a field")
        avro_type = self.type_at(item["type"], f"{at}/type", own, depth + 1)
        order = item.get("order", "ascending")
        if not isinstance(order, str) or order_word(order) not in _ORDERS:
            _fail(f"{at}/order", f"{shown(order)} is not one of {', '.join(_ORDERS)}")
        default = item.get("default", MISSING)
        if default is not MISSING:
            self._defaults.append((f"{at}/default", avro_type, default))
        doc = item.get("doc")
        aliases = _aliases(item, at, dotted=False)
        return Field(name, aliases, avro_type, default, doc if isinstance(doc, str) else "")

    def check_defaults(self) -> None:
        """Check that every default is a value of its field's type."""
        defaults = Defaults(self.names)
        for path, avro_type, default in self._defaults:
            problem = defaults.problem(avro_type, default)
            if problem:
                _fail(f"{path}{problem[0]}", problem[1])


def order_word(order: str) -> str:
    """The order of a field in lower case: Java's parser ignores the case of letters."""
    return order.upper().lower()


def _name(value: Json, path: str, *, dotted: bool = False) -> str:
    parts = value.split(".") if isinstance(value, str) and dotted else [value]
    if not isinstance(value, str) or not all(
        isinstance(part, str) and _NAME.fullmatch(part) for part in parts
    ):
        _fail(path, f"{shown(value)} is not a name", "letters, digits and _, no digit first.")
    return value


def _aliases(value: JsonObject, path: str, *, dotted: bool) -> tuple[str, ...]:
    aliases = value.get("aliases", [])
    if not isinstance(aliases, list):
        _fail(f"{path}/aliases", f"aliases are a list of names, not {shown(aliases)}")
    return tuple(_name(alias, f"{path}/aliases", dotted=dotted) for alias in aliases)


def decimal_parameters(value: JsonObject, size: int | None) -> tuple[Logical | None, int, int]:
    """The logical type decimal with precision and scale; None if it is absent or invalid."""
    if value.get("logicalType") != Logical.DECIMAL.value:
        return None, 0, 0
    precision, scale = value.get("precision"), value.get("scale", 0)
    whole = all(isinstance(n, int) and not isinstance(n, bool) for n in (precision, scale))
    if not whole or not isinstance(precision, int) or not isinstance(scale, int):
        return None, 0, 0
    if not 0 < precision <= INT_MAX or not 0 <= scale <= precision:
        return None, 0, 0
    if size is not None and precision > math.floor((8 * size - 1) * math.log10(2)):
        return None, 0, 0
    return Logical.DECIMAL, precision, scale


def _primitive(kind: Kind, value: JsonObject) -> Primitive:
    if kind is Kind.BYTES:
        logical, precision, scale = decimal_parameters(value, None)
        return Primitive(kind, logical, precision, scale)
    word = value.get("logicalType")
    found = next((lt for lt, base in _LOGICAL_BASE.items() if lt.value == word), None)
    return Primitive(kind, found if found and _LOGICAL_BASE[found] is kind else None)
