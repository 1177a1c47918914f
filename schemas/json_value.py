"""JSON values as types: what is decoded where it comes in, and what is encoded where it goes out.

A reader narrows a value with `isinstance`, or with one of the functions here where the form is
known already: a schema that was parsed has a text as its type, and a list of fields. Pure.
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
    """A value that is known to be an object."""
    if isinstance(value, dict):
        return value
    raise TypeError(f"an object was expected, not {type(value).__name__}")


def list_of(value: Json) -> list[Json]:
    """A value that is known to be a list."""
    if isinstance(value, list):
        return value
    raise TypeError(f"a list was expected, not {type(value).__name__}")


def text_of(value: Json) -> str:
    """A value that is known to be a text."""
    if isinstance(value, str):
        return value
    raise TypeError(f"a text was expected, not {type(value).__name__}")


def number_of(value: Json) -> int:
    """A value that is known to be a whole number."""
    if isinstance(value, int):
        return value
    raise TypeError(f"a whole number was expected, not {type(value).__name__}")


def texts_of(value: Json) -> list[str]:
    """A value that is known to be a list of texts."""
    return [text_of(one) for one in list_of(value)]


def texts_in(value: Json) -> tuple[str, ...] | None:
    """The texts of a list; None for everything else."""
    if not isinstance(value, list):
        return None
    texts = tuple(one for one in value if isinstance(one, str))
    return texts if len(texts) == len(value) else None


def parts_of(value: Json) -> Iterable[Json]:
    """What is directly in a list or an object; nothing for everything else."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
