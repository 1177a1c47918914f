"""Name resolution in schemas: the type of a name, and the name of a type. Pure.

A name without dots refers to the type of its namespace, or else to the type without a namespace.
Names that Avro's implementations resolve differently are rejected: one text would be two schemas.
"""

from collections.abc import Container

from pipeline.errors import SchemaError
from schemas.types import Kind

NAMED = frozenset({"record", "error", "enum", "fixed"})
_WORDS = {kind.value for kind in Kind}
"""A type with such a short name is always referred to by its full name."""


def qualified(name: str, space: str | None) -> str:
    """The full name of a name in a namespace."""
    return name if "." in name or not space else f"{space}.{name}"


def space_of(full: str) -> str | None:
    """The namespace of a full name."""
    return full.rpartition(".")[0] or None


def spelled(full: str, space: str | None) -> str:
    """The form of a full name inside a namespace: short if possible."""
    own, _, short = full.rpartition(".")
    return short if own == (space or "") and short not in _WORDS else full


class Names:
    """Types that can be referred to at the present position of a text that is read or written.

    In Java a record cannot be referred to by name before its end, in other implementations it can.

    Args:
        finished: full names of types that are defined; it grows meanwhile.
    """

    def __init__(self, finished: Container[str]) -> None:
        self._finished = finished
        self.unfinished: set[str] = set()
        self._expected: dict[str, str] = {}
        """Names that Java resolves to a later definition, with their types here."""

    def __contains__(self, full: object) -> bool:
        return full in self._finished or full in self.unfinished

    def begin(self, full: str, place: str) -> None:
        """Begin the definition of a type.

        Raises:
            SchemaError: a preceding name would refer to it, too.
        """
        if full in self._expected:
            _unclear(full, self._expected[full], place)
        self.unfinished.add(full)

    def end(self, full: str) -> None:
        """End the definition of a type."""
        self.unfinished.discard(full)

    def meant(self, name: str, space: str | None, place: str) -> str | None:
        """Resolve a name inside a namespace to a full name; None: it is undefined.

        Raises:
            SchemaError: it could refer to two types.
        """
        full = qualified(name, space)
        if full in self._finished:
            return full
        if full in self.unfinished:
            short = spelled(full, space)
            if short != full and short in self._finished:
                _unclear(full, short, place)
            return full
        if name in self.unfinished and name not in self._finished:
            self._expected[full] = name
        return name if name in self else None

    def require_spelling(self, full: str, space: str | None, place: str) -> None:
        """Check that a type can be referred to inside a namespace.

        Raises:
            SchemaError: its name refers to another type there.
        """
        meant = self.meant(spelled(full, space), space, place)
        if meant is not None and meant != full:
            _unclear(meant, full, place)


def _unclear(one: str, other: str, place: str) -> None:
    raise SchemaError(
        f"a name would mean both {one} and {other}, which Avro cannot tell apart here",
        place=place or "/",
        hint="give one of the two types another name.",
    )
