"""The registry over HTTP, as an ASGI application.

The event loop only reads requests, waits and writes answers. What changes the registry, or parses
and compares schemas, runs in threads, so that neither a slow store nor a large schema holds up
anybody else.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final, TypeVar

from pipeline.clock import Clock
from pipeline.errors import MedusaError, RetryError
from schemas.registry.names import SubjectName
from schemas.registry.registry import WITHIN_S, Registry
from schemas.registry.scopes import aliased
from schemas.registry.state import Decided, State
from schemas.rest.access import Access
from schemas.rest.call import NOTHING, Call, Text
from schemas.rest.errors import HttpError, http_error
from schemas.rest.reading import (
    MEDIA_TYPE,
    GoneError,
    Receive,
    Scope,
    body_of,
    headers_of,
    media_of,
    path_of,
    query_of,
    request_id,
)
from schemas.rest.rewriting import rewritten
from schemas.rest.routes import Kind, Route, find

BODY_WITHIN_S: Final = 30.0
THREADS: Final = 16
_LOG = logging.getLogger(__name__)

T = TypeVar("T")
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class RegistryApp:
    """Answers requests to one registry.

    Args:
        registry: what is served.
        clock: for when requests come.
        access: who may do what; None: everybody may do everything.
        body_within_s: how long a client may take to send a body.
    """

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        access: Access | None = None,
        *,
        body_within_s: float = BODY_WITHIN_S,
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._access = access
        self._body_within_s = body_within_s
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="registry-request")

    def close(self) -> None:
        """Take no further requests."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        given = headers_of(scope)
        media = media_of(given.get(b"accept", ""))
        status, body, headers = 200, b"", []
        try:
            body = await self._answer(scope, given, receive, taken=media is not None)
            status = 200 if body else 204
        except GoneError:
            return
        except HttpError as error:
            status, body, headers = error.status, told(error), error.headers
        except MedusaError as error:
            refusal = http_error(error)
            if refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                _LOG.warning("%s %r: %s", scope["method"], scope["path"], error)
            status, body = refusal.status, told(refusal)
        except Exception:  # noqa: BLE001 - whoever asked must hear of it
            _LOG.exception("%s %r failed", scope["method"], scope["path"])
            status, body = 500, told(HttpError(500, message="Internal Server Error"))
        headers = [*headers, (b"x-request-id", request_id(given))]
        await _respond(send, status, body, media or MEDIA_TYPE, headers)

    async def _answer(
        self, scope: Scope, given: Mapping[bytes, str], receive: Receive, *, taken: bool
    ) -> bytes:
        """The body of the answer; none where there is nothing to say."""
        path, query = rewritten(path_of(scope), query_of(scope))
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        route, named = find(method, path)
        if not taken:
            raise HttpError(406)
        user = self._access.user(given.get(b"authorization", "")) if self._access else None
        body = await body_of(given, receive, self._body_within_s) if route.takes_body else {}
        call = Call(named, query, body, self._clock.now_ms())

        def checked(state: State) -> Call:
            """The call with the subject that an alias stands for, if it is allowed."""
            meant = _meant(state, route, call)
            if self._access is None or user is None:
                return meant
            self._access.check(user, route, meant)
            return replace(meant, reads=user.reads)

        if route.kind is Kind.CHANGE:

            def decide(state: State) -> Decided[Any]:
                return _decided(route, state, checked(state))

            return _encoded(await self._beside(self._registry.change, decide))
        state = await self._newest()

        def answered() -> bytes:
            return _encoded(route.handler(state, checked(state)))

        if route.kind is Kind.SLOW or call.parses:
            return await self._beside(answered)
        return answered()

    async def _newest(self) -> State:
        try:
            return await asyncio.wait_for(asyncio.wrap_future(self._registry.ask()), WITHIN_S)
        except TimeoutError as error:
            raise RetryError(f"no answer within {WITHIN_S:g} s", place="the store") from error

    async def _beside(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)


async def overloaded(scope: Scope, _: Receive, send: Send) -> None:
    """Answer a request that comes on one connection too many."""
    given = headers_of(scope)
    media = media_of(given.get(b"accept", "")) or MEDIA_TYPE
    message = "the server has too many connections; try again later"
    headers = [(b"connection", b"close"), (b"x-request-id", request_id(given))]
    await _respond(send, 503, told(HttpError(503, message=message)), media, headers)


def _decided(route: Route, state: State, call: Call) -> Decided[Any]:
    made: Decided[Any] = route.handler(state, call)
    return made


def _meant(state: State, route: Route, call: Call) -> Call:
    """A call with the subjects that its names stand for."""
    if "subjects" in route.parts and "subject" in call.path:
        name = aliased(state, call.subject)
        return replace(call, path={**call.path, "subject": str(name)})
    if route.parts[:2] == ("schemas", "ids") and call.text("subject"):
        name = aliased(state, SubjectName.parse(call.text("subject")))
        query = [("subject", str(name)), *(p for p in call.query if p[0] != "subject")]
        return replace(call, query=query)
    return call


def _encoded(answer: Any) -> bytes:
    if answer is NOTHING:
        return b""
    if isinstance(answer, Text):
        return answer.text.encode()
    return json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode()


def told(error: HttpError) -> bytes:
    """The body in which a client hears of an error."""
    return _encoded({"error_code": error.code, "message": error.message})


async def _respond(
    send: Send, status: int, body: bytes, media: str, headers: list[tuple[bytes, bytes]]
) -> None:
    kind = [(b"content-type", media.encode())] if body else []
    length = [] if status == HTTPStatus.NO_CONTENT else [(b"content-length", b"%d" % len(body))]
    start = {"status": status, "headers": [*kind, *length, *headers]}
    await send({"type": "http.response.start", **start})
    await send({"type": "http.response.body", "body": body})
