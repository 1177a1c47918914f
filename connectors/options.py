"""Options of any connector, checked. Pure."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipeline import durations
from pipeline.errors import InputError
from pipeline.secrets import Secret, SecretSetting
from schemas.json_value import Json, JsonObject

Check = Callable[[Json], Any]
"""Returns the value of an option, or raises `ValueError` with what was expected."""


def checked(
    given: JsonObject, known: Mapping[str, Check], *, required: tuple[str, ...]
) -> dict[str, Any]:
    """The values of options.

    Args:
        given: as in the document.
        known: per name the check of its value.
        required: the names that must be there.

    Raises:
        InputError: an option is missing, unknown or wrong.
    """
    for name in given:
        if name not in known:
            raise InputError(
                "there is no such option", place=name, hint=f"there is: {', '.join(known)}."
            )
    for name in required:
        if name not in given:
            raise InputError("this option is missing", place=name)
    found = {}
    for name, value in given.items():
        try:
            found[name] = known[name](value)
        except ValueError as error:
            raise InputError(f"{value!r} is not {error}", place=name) from error
    return found


def text(value: Json) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError("a text")
    return value


def duration(value: Json) -> int:
    """A duration, such as `10s`, in milliseconds."""
    try:
        return durations.parse(value if isinstance(value, str) else "")
    except ValueError as error:
        raise ValueError("a duration, such as 10s") from error


def one_of(*words: str) -> Check:
    """One of several words."""

    def check(value: Json) -> str:
        if value not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return str(value)

    return check


def whole(least: int, most: int) -> Check:
    """A whole number between two others."""

    def check(value: Json) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return value

    return check


def texts(value: Json) -> tuple[str, ...]:
    """A list of texts, each of which is there once, or one text."""
    given = value if isinstance(value, list) else [value]
    if not given or len(set(map(str, given))) < len(given):
        raise ValueError("a list of different texts")
    return tuple(text(one) for one in given)


def secret(name: str, folder: Path) -> Check:
    """A secret, or a reference to one, of which relative paths begin at a folder."""

    def check(value: Json) -> Secret:
        if not isinstance(value, str) or not value:  # its value is not shown
            raise InputError("a secret is a text, in quotes if it is a number", place=name)
        return SecretSetting(value, name, folder).resolve()

    return check
