"""Canonical JSON (RFC 8785), and SHA-256 digests of it: one value has exactly one form in bytes."""

import hashlib
import json
from typing import NewType, NoReturn

import rfc8785

from pipeline.errors import RefusedError
from schemas.json_value import Encodable, Json, JsonObject

Digest = NewType("Digest", str)
"""SHA-256 as 64 lower-case hexadecimal digits."""
NOTHING_BEFORE = Digest("")
"""Of the first document of a chain."""


def canonical(value: Encodable) -> bytes:
    """The canonical form of a value of texts, whole numbers, truth values, lists and objects.

    Raises:
        RefusedError: a number is too large for JSON, or a text is not Unicode.
    """
    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError as error:
        raise RefusedError(f"this has no canonical JSON form: {error}") from error


def digest(value: Encodable) -> Digest:
    """The digest of the canonical form of a value."""
    return Digest(hashlib.sha256(canonical(value)).hexdigest())


def read_object(data: bytes, what: str, place: str) -> JsonObject:
    """Parse an object from its canonical form, and from no other one.

    Args:
        data: the bytes.
        what: what it is, for errors.
        place: where it was found.

    Raises:
        RefusedError: it is not JSON, has a number that is not whole, or another form than the
            canonical one: something was changed since it was written.
    """
    try:
        found: Json = json.loads(data, parse_float=_no_float, parse_constant=_no_float)
    except (ValueError, RecursionError) as error:
        raise _changed(what, place, f"it is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise _changed(what, place, "it is no object")
    if canonical(found) != data:
        raise _changed(what, place, "it is not in canonical form")
    return found


def _no_float(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a whole number")


def _changed(what: str, place: str, why: str) -> RefusedError:
    return RefusedError(
        f"this is no {what}: {why}", place=place, hint="it was changed since it was written."
    )
