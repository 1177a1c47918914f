"""A schema with the types of the schemas that it uses in their places, to be read alone. Pure.

Every named type is written out where it first stands, under its full name, and named after that.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from schemas.avro import AvroSchema
from schemas.registry.java_text import NAMED, qualified
from schemas.types import PRIMITIVES

_Definition = tuple[dict[str, Any], str | None]
"""A named type, and the namespace in which it stands."""


def inlined(value: Any, used: Sequence[AvroSchema]) -> Any:
    """A schema's JSON value that names no type which it does not define itself.

    Args:
        value: of a schema that parsed with `used`.
        used: the schemas whose types it may use; what defines a type first counts.
    """
    defined: dict[str, _Definition] = {}
    for one in used:
        for full, definition in _definitions(one.value, None):
            defined.setdefault(full, definition)
    return _Inliner(defined).walk(value, None)


def _definitions(part: Any, space: str | None) -> Iterator[tuple[str, _Definition]]:
    """Every named type that a type defines, by its full name."""
    if isinstance(part, list):
        for branch in part:
            yield from _definitions(branch, space)
    elif isinstance(part, dict) and part["type"] in NAMED:
        full = _full_name(part, space)
        yield full, (part, space)
        for field in part.get("fields", ()):
            yield from _definitions(field["type"], _space_of(full))
    elif isinstance(part, dict) and part["type"] in {"array", "map"}:
        yield from _definitions(part[_inside(part)], space)


class _Inliner:
    """Writes out one schema."""

    def __init__(self, defined: dict[str, _Definition]) -> None:
        self._defined = defined
        self._known: set[str] = set()

    def walk(self, part: Any, space: str | None) -> Any:
        """A type inside a namespace."""
        if isinstance(part, list):
            return [self.walk(branch, space) for branch in part]
        if isinstance(part, str):
            return self._by_name(part, space)
        if part["type"] in NAMED:
            return self._named(part, space)
        if part["type"] in {"array", "map"}:
            return {**part, _inside(part): self.walk(part[_inside(part)], space)}
        plain = part["type"] in PRIMITIVES
        return part if plain else self._by_name(part["type"], space)

    def _by_name(self, name: str, space: str | None) -> Any:
        if name in PRIMITIVES:
            return name
        for full in (qualified(name, space), name):
            if full in self._known:
                return full
            if full in self._defined:
                return self._named(*self._defined[full])
        return name

    def _named(self, part: dict[str, Any], space: str | None) -> Any:
        full = _full_name(part, space)
        if full in self._known:
            return full
        self._known.add(full)
        made = {**part, "name": full}
        made.pop("namespace", None)
        if "." not in full:
            made["namespace"] = ""
        if "fields" in part:
            own = _space_of(full)
            made["fields"] = [{**f, "type": self.walk(f["type"], own)} for f in part["fields"]]
        return made


def _full_name(part: dict[str, Any], space: str | None) -> str:
    return qualified(part["name"], part.get("namespace", space))


def _space_of(full: str) -> str | None:
    return full.rpartition(".")[0] or None


def _inside(part: dict[str, Any]) -> str:
    """The key of what an array or a map holds."""
    return "items" if part["type"] == "array" else "values"
