"""Types of JSON values, decoded and to be encoded, and functions that narrow them. Pure.

A reader narrows a value with `isinstance`, or with one of the functions here if the form has been
validated: a schema that was parsed has a text as its type, and a list of fields.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
JsonObject: TypeAlias = dict[str, Json]
Encodable: TypeAlias = (
    bool | int | float | str | Sequence["Encodable"] | Mapping[str, "Encodable"] | None
)
"""A value that is only written as JSON: covariant, so that a list of texts is one."""


def object_of(value: Json) -> JsonObject:
    """A value that must be an object."""
    if isinstance(value, dict):
        return value
    raise TypeError(f"an object was expected, not {type(value).__name__}")


def list_of(value: Json) -> list[Json]:
    """A value that must be a list."""
    if isinstance(value, list):
        return value
    raise TypeError(f"a list was expected, not {type(value).__name__}")


def text_of(value: Json) -> str:
    """A value that must be a text."""
    if isinstance(value, str):
        return value
    raise TypeError(f"a text was expected, not {type(value).__name__}")


def number_of(value: Json) -> int:
    """A value that must be a whole number."""
    if isinstance(value, int):
        return value
    raise TypeError(f"a whole number was expected, not {type(value).__name__}")


def texts_of(value: Json) -> list[str]:
    """A value that must be a list of texts."""
    return [text_of(one) for one in list_of(value)]


def texts_in(value: Json) -> tuple[str, ...] | None:
    """The texts of a list of texts; None for any other value."""
    if not isinstance(value, list):
        return None
    texts = tuple(one for one in value if isinstance(one, str))
    return texts if len(texts) == len(value) else None


def parts_of(value: Json) -> Iterable[Json]:
    """The direct elements of a list or an object; empty for any other value."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
