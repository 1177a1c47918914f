"""Stored JSON objects, each with the format that it was written in. Pure."""

import json

from pipeline.errors import RefusedError
from pipeline.formats import check
from schemas.json_value import Json, JsonObject


def fields_of(
    value: bytes | None, what: str, place: str, refused: type[RefusedError]
) -> JsonObject:
    """The fields of a stored JSON object in a format that this program understands.

    Args:
        value: the object, with its format.
        what: what it is, for the errors.
        place: where it was found.
        refused: the error if it is something else.

    Raises:
        NewerFormatError: a newer version of Medusa wrote it.
        RefusedError: it is something else.
    """
    try:
        found: Json = json.loads(value or b"")
    except (ValueError, RecursionError) as error:
        raise refused(f"a record is no {what}", place=place) from error
    fields = found if isinstance(found, dict) else {}
    written = fields.get("format")
    if not isinstance(written, int) or isinstance(written, bool):
        raise refused(f"a record is no {what}", place=place)
    check(written, what, place)
    return fields
