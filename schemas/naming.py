"""Which type a name in a schema means, and how a type is named. Pure.

A name without dots means the type of its namespace, or else the type without a namespace. Where
Avro's implementations differ about that, it is a mistake: one text would be two schemas.
"""

from collections.abc import Container

from pipeline.errors import SchemaError
from schemas.types import Kind

NAMED = frozenset({"record", "error", "enum", "fixed"})
_WORDS = {kind.value for kind in Kind}
"""A type of such a name is always named in full."""


def qualified(name: str, space: str | None) -> str:
    """A name in full."""
    return name if "." in name or not space else f"{space}.{name}"


def space_of(full: str) -> str | None:
    """The namespace of a full name."""
    return full.rpartition(".")[0] or None


def spelled(full: str, space: str | None) -> str:
    """A full name as it is written inside a namespace."""
    own, _, short = full.rpartition(".")
    return short if own == (space or "") and short not in _WORDS else full


class Names:
    """The types that can be named, while a text is read or written from its beginning to its end.

    Java takes the name of a record for unknown until the record ends, other implementations do not.

    Args:
        finished: full names of types that are defined; it grows meanwhile.
    """

    def __init__(self, finished: Container[str]) -> None:
        self._finished = finished
        self.unfinished: set[str] = set()
        self._expected: dict[str, str] = {}
        """Names that Java expects to be defined yet, and what they mean here."""

    def __contains__(self, full: object) -> bool:
        return full in self._finished or full in self.unfinished

    def begin(self, full: str, place: str) -> None:
        """The definition of a type begins.

        Raises:
            SchemaError: a name before this would mean it, too.
        """
        if full in self._expected:
            _unclear(full, self._expected[full], place)
        self.unfinished.add(full)

    def end(self, full: str) -> None:
        """The definition of a type ends."""
        self.unfinished.discard(full)

    def meant(self, name: str, space: str | None, place: str) -> str | None:
        """The full name of what a name means inside a namespace; None: nothing.

        Raises:
            SchemaError: it could mean two types.
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
        """Make sure that a type can be named inside a namespace.

        Raises:
            SchemaError: its name means another one there.
        """
        name = spelled(full, space)
        meant = self.meant(name, space, place)
        if meant is not None and meant != full:
            _unclear(meant, full, place)


def _unclear(one: str, other: str, place: str) -> None:
    raise SchemaError(
        f"a name would mean both {one} and {other}, which Avro cannot tell apart here",
        place=place or "/",
        hint="give one of the two types another name.",
    )
