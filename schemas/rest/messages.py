"""HTTP requests and answers, as an application sees them. Pure."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Header: TypeAlias = tuple[bytes, bytes]


class GoneError(Exception):
    """The connection ends, or has ended, without an answer of the application."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Args:
        method: GET, POST and so on.
        target: path and query as they were sent.
        headers: values by names in small letters; of a repeated one the last.
        receive: gives the next part of the body; nothing at its end. Raises `GoneError`.
    """

    method: str
    target: bytes
    headers: Mapping[bytes, str]
    receive: Callable[[], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class Response:
    """One answer; it has a content type if and only if it has a body."""

    status: int
    headers: tuple[Header, ...] = ()
    body: bytes = b""


Application: TypeAlias = Callable[[Request], Awaitable[Response]]
