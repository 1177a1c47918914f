"""Structural diff of two schemas, with messages. Pure.

It compares content forms (`schemas.canonical`), which contain everything that an author writes
except its spelling. So two schemas have no changes if and only if they have the same content.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from schemas.avro import AvroSchema
from schemas.canonical import alike, content
from schemas.json_value import Json, JsonObject, list_of, object_of, text_of, texts_of
from schemas.types import PRIMITIVES, shown

_NAMED = {"record", "error", "enum", "fixed"}
_WIDER: Mapping[str, frozenset[str]] = {
    "int": frozenset({"long", "float", "double"}),
    "long": frozenset({"float", "double"}),
    "float": frozenset({"double"}),
}
_OF_LOGICAL = ("logicalType", "precision", "scale")
_DESCRIBED: Mapping[str, frozenset[str]] = {
    "record": frozenset({"type", "name", "fields"}),
    "error": frozenset({"type", "name", "fields"}),
    "enum": frozenset({"type", "name", "symbols", "default"}),
    "fixed": frozenset({"type", "name", "size", *_OF_LOGICAL}),
    "array": frozenset({"type", "items"}),
    "map": frozenset({"type", "values"}),
}
"""The keys of a type with messages of their own; all others are reported as attributes."""
_DESCRIBED_OF_PRIMITIVES = frozenset({"type", *_OF_LOGICAL})
_DESCRIBED_OF_FIELDS = frozenset({"name", "type", "default"})


class Kind(Enum):
    """The sort of a change; the value is for programs."""

    FIELD_ADDED = "field-added"
    FIELD_REMOVED = "field-removed"
    FIELD_RENAMED = "field-renamed"
    FIELDS_MOVED = "fields-moved"
    DEFAULT_ADDED = "default-added"
    DEFAULT_REMOVED = "default-removed"
    DEFAULT_CHANGED = "default-changed"
    DOC_CHANGED = "doc-changed"
    ALIASES_CHANGED = "aliases-changed"
    ORDER_CHANGED = "order-changed"
    TYPE_WIDENED = "type-widened"
    TYPE_NARROWED = "type-narrowed"
    TYPE_CHANGED = "type-changed"
    TYPE_RENAMED = "type-renamed"
    LOGICAL_TYPE_CHANGED = "logical-type-changed"
    SIZE_CHANGED = "size-changed"
    SYMBOL_ADDED = "symbol-added"
    SYMBOL_REMOVED = "symbol-removed"
    SYMBOLS_MOVED = "symbols-moved"
    BRANCH_ADDED = "branch-added"
    BRANCH_REMOVED = "branch-removed"
    BRANCHES_MOVED = "branches-moved"
    ATTRIBUTE_CHANGED = "attribute-changed"


@dataclass(frozen=True, slots=True)
class Change:
    """One change.

    Args:
        kind: the sort of change.
        path: in the new schema, or in the old one for removed parts: `/fields/speed/type`.
        message: the change in words, with the old and the new value.
    """

    kind: Kind
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def changes(old: AvroSchema, new: AvroSchema) -> tuple[Change, ...]:
    """The changes from the old schema to the new one, in document order."""
    before, after = content(old.value), content(new.value)
    return tuple(_Comparison(_definitions(before), _definitions(after)).types(before, after, ""))


def in_words(value: Json) -> str:  # noqa: PLR0911 - one return for each kind
    """A type of the content form in few words: `int`, `record tolls.Toll`, `array of string`."""
    match value:
        case str():
            return value
        case list():
            return f"union of {' and '.join(map(in_words, value))}" if value else "union of nothing"
        case {"type": "array", "items": items}:
            return f"array of {in_words(items)}"
        case {"type": "map", "values": values}:
            return f"map of {in_words(values)}"
        case {"type": "fixed", "name": name, "size": size}:
            return f"fixed {name} of {size} bytes{_in_brackets(object_of(value))}"
        case {"type": kind, "name": name}:
            return f"{kind} {name}"
    plain = object_of(value)
    return f"{plain['type']}{_in_brackets(plain)}"


def _in_brackets(value: JsonObject) -> str:
    if "logicalType" not in value:
        return ""
    digits = ",".join(str(value[key]) for key in ("precision", "scale") if key in value)
    return f" ({value['logicalType']}{' ' if digits else ''}{digits})"


def _definitions(value: Json) -> dict[str, JsonObject]:
    """Every named type that a type defines, by its full name."""
    found: dict[str, JsonObject] = {}
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, list):
            todo += one
        elif isinstance(one, dict):
            if one["type"] in _NAMED:
                found[_name(one)] = one
            match one["type"]:
                case "record" | "error":
                    todo += [field["type"] for field in _fields(one)]
                case "array":
                    todo.append(one["items"])
                case "map":
                    todo.append(one["values"])
    return found


class _Comparison:
    """Comparison of two schemas; a pair of named types is compared at its first occurrence."""

    def __init__(self, old: dict[str, JsonObject], new: dict[str, JsonObject]) -> None:
        self._old = old
        self._new = new
        self._seen: set[tuple[str, str]] = set()

    def types(self, old: Json, new: Json, path: str) -> Iterator[Change]:
        """The changes from one type to another at a path."""
        at = path or "/"
        if _is_decorated(old) or _is_decorated(new):
            yield from _attributes(_decorations(old), _decorations(new), at, {"type"})
        old, new = _resolved(old, self._old), _resolved(new, self._new)
        if isinstance(old, list) or isinstance(new, list):
            yield from self._unions(old, new, path)
            return
        kinds = kind_of(old), kind_of(new)
        if kinds[0] != kinds[1]:
            yield _retyped(old, new, at)
            return
        before, after = _as_dict(old), _as_dict(new)
        if kinds[0] not in _NAMED or self._is_new(_name(before), _name(after)):
            yield from self._alike(before, after, path)

    def _is_new(self, old: str, new: str) -> bool:
        """Whether two named types have not been compared yet; marks them as compared."""
        is_new = (old, new) not in self._seen
        self._seen.add((old, new))
        return is_new

    def _alike(self, old: JsonObject, new: JsonObject, path: str) -> Iterator[Change]:
        """The changes between two types of the same kind."""
        at, kind = path or "/", str(new["type"])
        if kind in _NAMED and old["name"] != new["name"]:
            words = f"{in_words(old)} was renamed to {new['name']}{_by_alias(new, _name(old))}"
            yield Change(Kind.TYPE_RENAMED, at, words)
        if kind == "fixed" or kind in PRIMITIVES:
            yield from _logical_types(old, new, at)
        yield from _attributes(old, new, at, _DESCRIBED.get(kind, _DESCRIBED_OF_PRIMITIVES))
        match kind:
            case "record" | "error":
                yield from self._fields(_fields(old), _fields(new), path)
            case "enum":
                yield from _defaults(old, new, at)
                yield from _symbols(texts_of(old["symbols"]), texts_of(new["symbols"]), at)
            case "fixed" if old["size"] != new["size"]:
                words = f"size was {old['size']} bytes, is {new['size']}"
                yield Change(Kind.SIZE_CHANGED, at, words)
            case "array":
                yield from self.types(old["items"], new["items"], f"{path}/items")
            case "map":
                yield from self.types(old["values"], new["values"], f"{path}/values")

    def _fields(self, old: list[JsonObject], new: list[JsonObject], path: str) -> Iterator[Change]:
        pairs = _paired_fields(old, new)
        partners = {after: before for before, after in pairs}
        for position, field in enumerate(new):
            at = f"{path}/fields/{field['name']}"
            if position not in partners:
                yield Change(Kind.FIELD_ADDED, at, _added(field))
                continue
            before = old[partners[position]]
            if before["name"] != field["name"]:
                words = f"field {before['name']} was renamed to {field['name']}"
                words += _by_alias(field, _name(before))
                yield Change(Kind.FIELD_RENAMED, at, words)
            yield from self.types(before["type"], field["type"], f"{at}/type")
            yield from _defaults(before, field, at)
            yield from _attributes(before, field, at, _DESCRIBED_OF_FIELDS)
        stayed = {before for before, _ in pairs}
        for position, field in enumerate(old):
            if position not in stayed:
                words = f"field {field['name']} ({in_words(field['type'])}) was removed"
                yield Change(Kind.FIELD_REMOVED, f"{path}/fields/{field['name']}", words)
        if [before for before, _ in pairs] != sorted(stayed):
            order = ", ".join(map(_name, new))
            words = f"fields are in another order: {order}"
            yield Change(Kind.FIELDS_MOVED, f"{path}/fields", words)

    def _unions(self, old: Json, new: Json, path: str) -> Iterator[Change]:
        before: list[Json] = old if isinstance(old, list) else [old]
        after: list[Json] = new if isinstance(new, list) else [new]
        pairs = self._paired_branches(before, after)
        at = path or "/"
        if not pairs:
            yield Change(Kind.TYPE_CHANGED, at, f"{in_words(old)} became {in_words(new)}")
            return
        if isinstance(old, list) != isinstance(new, list) and len(before) == len(after):
            yield Change(Kind.TYPE_CHANGED, at, f"{in_words(old)} became {in_words(new)}")
        for mine, theirs in pairs:
            inner = f"{path}/{theirs}" if isinstance(new, list) else path
            yield from self.types(before[mine], after[theirs], inner)
        became = f"{in_words(old)} became {in_words(new)}"
        kept_old, kept_new = {mine for mine, _ in pairs}, {theirs for _, theirs in pairs}
        for index, branch in enumerate(after):
            if index not in kept_new:
                words = f"the branch {in_words(branch)} was added: {became}"
                yield Change(Kind.BRANCH_ADDED, at, words)
        for index, branch in enumerate(before):
            if index not in kept_old:
                words = f"the branch {in_words(branch)} was removed: {became}"
                yield Change(Kind.BRANCH_REMOVED, at, words)
        if [mine for mine, _ in pairs] != sorted(kept_old):
            words = f"branches are in another order: {became}"
            yield Change(Kind.BRANCHES_MOVED, at, words)

    def _paired_branches(self, old: list[Json], new: list[Json]) -> list[tuple[int, int]]:
        """Pairs of corresponding branches: by name or type, then by alias, then by widening."""
        mine = [_resolved(branch, self._old) for branch in old]
        theirs = [_resolved(branch, self._new) for branch in new]

        def renamed(before: Json, after: Json) -> bool:
            if not isinstance(before, dict) or not isinstance(after, dict):
                return False
            return "name" in before and _name(before) in texts_of(after.get("aliases", []))

        def turned(before: Json, after: Json) -> bool:
            kinds = kind_of(before), kind_of(after)
            return kinds[1] in _WIDER.get(kinds[0], ()) or kinds[0] in _WIDER.get(kinds[1], ())

        pairs: list[tuple[int, int]] = []
        rules: tuple[Callable[[Json, Json], bool], ...] = (
            lambda before, after: _key(before) == _key(after),
            renamed,
            turned,
        )
        for fits in rules:
            for index, after in enumerate(theirs):
                taken = {one for one, _ in pairs}, {other for _, other in pairs}
                free = (i for i in range(len(mine)) if i not in taken[0] and fits(mine[i], after))
                found = next(free, None) if index not in taken[1] else None
                if found is not None:
                    pairs.append((found, index))
        return sorted(pairs, key=lambda pair: pair[1])


def _is_decorated(value: Json) -> bool:
    """Whether it is a reference with attributes: `{"type": "tolls.Toll", "note": "x"}`."""
    return isinstance(value, dict) and value["type"] not in {*PRIMITIVES, *_DESCRIBED}


def _decorations(value: Json) -> JsonObject:
    return object_of(value) if _is_decorated(value) else {}


def _resolved(value: Json, names: dict[str, JsonObject]) -> Json:
    """The definition that a reference refers to; any other type unchanged.

    A reference inside a namespace may refer to a type without a namespace.
    """
    name = object_of(value)["type"] if _is_decorated(value) else value
    if isinstance(name, str) and name not in PRIMITIVES:
        return names.get(name) or names.get(name.rpartition(".")[2]) or _in_any(name, names)
    return value


def _in_any(short: str, names: dict[str, JsonObject]) -> Json:
    """A type by its short name, which a reference with attributes may use."""
    found: Iterator[Json] = (one for full, one in names.items() if full.rpartition(".")[2] == short)
    return next(found, short)


def kind_of(value: Json) -> str:
    """The kind of a type in content form that is no union: its name, or its `type`."""
    return value if isinstance(value, str) else text_of(object_of(value)["type"])


def _key(value: Json) -> str:
    """The key that identifies a branch of a union."""
    return _name(value) if isinstance(value, dict) and "name" in value else kind_of(value)


def _name(value: JsonObject) -> str:
    return text_of(value["name"])


def _fields(record: JsonObject) -> list[JsonObject]:
    return [object_of(field) for field in list_of(record["fields"])]


def _as_dict(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {"type": value}


def _retyped(old: Json, new: Json, at: str) -> Change:
    kinds = kind_of(old), kind_of(new)
    if kinds[1] in _WIDER.get(kinds[0], ()):
        return Change(Kind.TYPE_WIDENED, at, f"widened from {in_words(old)} to {in_words(new)}")
    if kinds[0] in _WIDER.get(kinds[1], ()):
        return Change(Kind.TYPE_NARROWED, at, f"narrowed from {in_words(old)} to {in_words(new)}")
    return Change(Kind.TYPE_CHANGED, at, f"{in_words(old)} became {in_words(new)}")


def _paired_fields(old: list[JsonObject], new: list[JsonObject]) -> list[tuple[int, int]]:
    """Pairs of corresponding fields, as positions, in the order of the new fields."""
    positions = {_name(field): index for index, field in enumerate(old)}
    kept = {_name(field) for field in new} & set(positions)
    pairs: list[tuple[int, int]] = []
    taken: set[str] = set(kept)
    for index, field in enumerate(new):
        # A field that still exists under its own name was not renamed.
        free = (
            name
            for name in texts_of(field.get("aliases", []))
            if name in positions and name not in taken
        )
        name = _name(field) if _name(field) in kept else next(free, None)
        if name is not None:
            taken.add(name)
            pairs.append((positions[name], index))
    return pairs


def _by_alias(new: JsonObject, before: str) -> str:
    return ", which it has as an alias" if before in texts_of(new.get("aliases", [])) else ""


def _added(field: JsonObject) -> str:
    with_default = (
        f"with the default {shown(field['default'])}" if "default" in field else "without a default"
    )
    return f"field {field['name']} ({in_words(field['type'])}) was added {with_default}"


def _symbols(old: list[str], new: list[str], at: str) -> Iterator[Change]:
    for symbol in new:
        if symbol not in old:
            yield Change(Kind.SYMBOL_ADDED, at, f"the symbol {symbol} was added")
    for symbol in old:
        if symbol not in new:
            yield Change(Kind.SYMBOL_REMOVED, at, f"the symbol {symbol} was removed")
    if [symbol for symbol in old if symbol in new] != [symbol for symbol in new if symbol in old]:
        yield Change(Kind.SYMBOLS_MOVED, at, f"symbols are in another order: {', '.join(new)}")


def _defaults(old: JsonObject, new: JsonObject, at: str) -> Iterator[Change]:
    if "default" not in old and "default" in new:
        words = f"the default {shown(new['default'])} was added"
        yield Change(Kind.DEFAULT_ADDED, at, words)
    elif "default" in old and "default" not in new:
        words = f"the default {shown(old['default'])} was removed"
        yield Change(Kind.DEFAULT_REMOVED, at, words)
    elif "default" in old and not alike(old["default"], new["default"]):
        words = f"the default was {shown(old['default'])}, is {shown(new['default'])}"
        yield Change(Kind.DEFAULT_CHANGED, at, words)


_WITH_A_KIND = {
    "doc": (Kind.DOC_CHANGED, "the documentation was"),
    "aliases": (Kind.ALIASES_CHANGED, "the aliases were"),
    "order": (Kind.ORDER_CHANGED, "the order of sorting was"),
}


def _attributes(
    old: JsonObject, new: JsonObject, at: str, described: Iterable[str]
) -> Iterator[Change]:
    """The changes of documentation and all other attributes without messages of their own."""
    for key in dict.fromkeys((*old, *new)):
        kind, what = _WITH_A_KIND.get(key, (Kind.ATTRIBUTE_CHANGED, f"the attribute {key} was"))
        if key in described:
            continue
        if key not in old:
            yield Change(kind, at, f"{what} added: {shown(new[key])}")
        elif key not in new:
            yield Change(kind, at, f"{what} removed: {shown(old[key])}")
        elif not alike(old[key], new[key]):
            now = shown(new[key])
            yield Change(kind, at, f"{what} {shown(old[key])}, now {now}")


def _logical_types(old: JsonObject, new: JsonObject, at: str) -> Iterator[Change]:
    if any(not alike(old.get(key), new.get(key)) for key in _OF_LOGICAL):
        yield Change(Kind.LOGICAL_TYPE_CHANGED, at, f"{in_words(old)} became {in_words(new)}")
