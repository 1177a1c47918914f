"""HTTP requests and responses: the interface between server and application. Pure."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Header: TypeAlias = tuple[bytes, bytes]


class GoneError(Exception):
    """The connection has ended, or must end, without a response of the application."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Args:
        method: GET, POST and so on.
        target: path and query as sent.
        headers: values by lower-case names; of a repeated one the last.
        receive: returns the next part of the body; empty at its end. Raises `GoneError`.
    """

    method: str
    target: bytes
    headers: Mapping[bytes, str]
    receive: Callable[[], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class Response:
    """One response; it has a content type if and only if it has a body."""

    status: int
    headers: tuple[Header, ...] = ()
    body: bytes = b""


Application: TypeAlias = Callable[[Request], Awaitable[Response]]
