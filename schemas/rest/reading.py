"""Parsing of HTTP requests: path, query, body, accepted media types."""

import asyncio
import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, unquote_to_bytes
from uuid import UUID, uuid4

from schemas.json_value import Json
from schemas.registry.limits import BODY_BYTES_MAX
from schemas.rest.call import Query
from schemas.rest.errors import MEDIA_TYPE, HttpError
from schemas.rest.messages import Request

_PRODUCED: Final = (MEDIA_TYPE, "application/vnd.schemaregistry+json", "application/json")
"""In order of preference, for clients that accept several equally."""
_CONSUMED: Final = (*_PRODUCED, "application/octet-stream")
_BROKEN_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape of half a surrogate pair, which may be invalid."""
_CLOSE: Final = ((b"connection", b"close"),)


def path_of(target: bytes) -> tuple[str, ...]:
    """The segments of a path, decoded; a name may contain a slash, written as %2F.

    Raises:
        HttpError: 400: it is not UTF-8, or an escape is broken.
    """
    raw = target.partition(b"?")[0]
    if raw.startswith((b"http://", b"https://")):  # as proxies may send it
        raw = b"/" + raw.split(b"/", 3)[3] if raw.count(b"/") > 2 else b"/"  # noqa: PLR2004 - of the scheme
    _check_escapes(raw)
    try:
        return tuple(unquote_to_bytes(part).decode() for part in raw.split(b"/") if part)
    except UnicodeDecodeError:
        raise HttpError(400, message="the path is not UTF-8") from None


def query_of(target: bytes) -> Query:
    """Names and values of a query, in their order.

    Raises:
        HttpError: 400: it is not UTF-8, or an escape is broken.
    """
    raw = target.partition(b"?")[2]
    _check_escapes(raw)
    try:
        return parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        raise HttpError(400, message="the query is not UTF-8") from None


def _check_escapes(raw: bytes) -> None:
    if _BROKEN_ESCAPE.search(raw):
        raise HttpError(400, message="a % that no two hexadecimal digits follow")


async def body_of(request: Request, within_s: float) -> Mapping[str, Json]:
    """Receive and parse the JSON object in the body of a request.

    Args:
        request: the request.
        within_s: timeout of the whole body.

    Raises:
        HttpError: it is too large, too slow, or no JSON object.
        GoneError: the client has disconnected.
    """
    media = request.headers.get(b"content-type", "").partition(";")[0].strip().lower()
    if media and media not in _CONSUMED:
        raise HttpError(415)
    try:
        data = await asyncio.wait_for(_received(request), within_s)
    except TimeoutError:
        raise HttpError(408, headers=_CLOSE) from None
    value = _value(data) if data.strip() else None
    if value is None:
        raise HttpError(422, message="the body must not be null")
    if not isinstance(value, dict):
        raise HttpError(400, message="the body is not a JSON object")
    return value


async def _received(request: Request) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := await request.receive():
        size += len(part)
        if size > BODY_BYTES_MAX:
            message = f"a body has at most {BODY_BYTES_MAX} bytes"
            raise HttpError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message=message, headers=_CLOSE)
        parts.append(part)
    return b"".join(parts)


def _value(data: bytes) -> Json:
    """Parse a JSON value in which every text can be encoded as UTF-8.

    Raises:
        HttpError: 400: it is invalid.
    """
    try:
        text = data.decode()
        value: Json = json.loads(text, parse_constant=_refuse_constant)
        if _HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeError:
        raise HttpError(400, message="the body is not UTF-8") from None
    except ValueError as error:
        raise HttpError(400, message=f"the body is not JSON: {error}") from None
    except RecursionError:
        raise HttpError(400, message="the body is not JSON: nested too deeply") from None
    return value


def _refuse_constant(word: str) -> Json:
    raise ValueError(f"{word} is no number")


def request_id(given: Mapping[bytes, str]) -> bytes:
    """The request id for the response header: the client's if it is a UUID, or a new one."""
    try:
        return str(UUID(given.get(b"x-request-id", ""))).encode()
    except ValueError:
        return str(uuid4()).encode()


def media_of(accept: str) -> str | None:
    """The media type of an answer by content negotiation; None: the client accepts none of ours."""
    if not accept.strip():
        return MEDIA_TYPE
    best, best_weight = None, 0.0
    accepted = [_accepted(one) for one in accept.split(",")]
    for media in _PRODUCED:
        weight = max((weight for kind, weight in accepted if _fits(kind, media)), default=0.0)
        if weight > best_weight:
            best, best_weight = media, weight
    return best


def _fits(kind: str, media: str) -> bool:
    """Whether a media type matches a range of an `Accept` header.

    As in JAX-RS, `*` matches any type, and so does `*/x`, whatever x is.
    """
    return kind in {media, "*", "application/*"} or kind.startswith("*/")


def _accepted(one: str) -> tuple[str, float]:
    kind, *parameters = (part.strip().lower() for part in one.split(";"))
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return kind, float(parameter[2:])
            except ValueError:
                return kind, 0.0
    return kind, 1.0
