"""REST application of the registry, for our HTTP server.

The event loop only reads requests, waits and writes answers. Changes of the registry, and requests
that parse or compare schemas, run in a thread pool, so that neither a slow store nor a large schema
delays other requests.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http import HTTPStatus
from typing import Final, TypeVar

from pipeline.clock import Clock
from pipeline.errors import MedusaError, RetryError
from schemas.registry.names import SubjectName
from schemas.registry.registry import WITHIN_S, Registry
from schemas.registry.scopes import aliased
from schemas.registry.state import Decided, State
from schemas.rest.access import Access
from schemas.rest.call import Answer, Call, Text
from schemas.rest.errors import MEDIA_TYPE, HttpError, http_error
from schemas.rest.messages import GoneError, Header, Request, Response
from schemas.rest.reading import body_of, media_of, path_of, query_of, request_id
from schemas.rest.rewriting import rewritten
from schemas.rest.routes import Kind, Route, find

BODY_WITHIN_S: Final = 30.0
THREADS: Final = 16
_LOG = logging.getLogger(__name__)

T = TypeVar("T")


class RegistryApp:
    """REST application of one registry.

    Args:
        registry: the registry.
        clock: for the times of requests.
        access: users and roles; None: no authorization.
        body_within_s: timeout of the body of a request.
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
        """Stop the thread pool."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def __call__(self, request: Request) -> Response:
        """Answer one request.

        Raises:
            GoneError: the client has disconnected.
        """
        media = media_of(request.headers.get(b"accept", ""))
        path = request.target.partition(b"?")[0].decode("latin-1")
        try:
            body = await self._answer(request, taken=media is not None)
            return _response(request, 200 if body else 204, body, media)
        except GoneError:
            raise
        except HttpError as error:
            refusal = error
        except MedusaError as error:
            refusal = http_error(error)
            if refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                _LOG.warning("%s %r: %s", request.method, path, error)
        except Exception:  # noqa: BLE001 - the client must get an answer
            _LOG.exception("%s %r failed", request.method, path)
            refusal = HttpError(500, message="Internal Server Error")
        return _refused(request, refusal, media)

    async def _answer(self, request: Request, *, taken: bool) -> bytes:
        """The body of the answer; may be empty."""
        path, query = rewritten(path_of(request.target), query_of(request.target))
        method = "GET" if request.method == "HEAD" else request.method
        route, named = find(method, path)
        if not taken:
            raise HttpError(406)
        login = request.headers.get(b"authorization", "")
        user = self._access.user(login) if self._access else None
        body = await body_of(request, self._body_within_s) if route.takes_body else {}
        call = Call(named, query, body, self._clock.now_ms())

        def checked(state: State) -> Call:
            """The call with aliases resolved, if it is allowed."""
            resolved = _with_aliases_resolved(state, route, call)
            if self._access is None or user is None:
                return resolved
            self._access.check(user, route, resolved)
            return replace(resolved, reads=user.reads)

        if route.kind is Kind.CHANGE:

            def decide(state: State) -> Decided[Answer]:
                return _decided(route, state, checked(state))

            return _encoded(await self._in_thread(lambda: self._registry.change(decide)))
        state = await self._newest()

        def answered() -> bytes:
            return _encoded(_decided(route, state, checked(state)).answer)

        if route.kind is Kind.SLOW or call.parses:
            return await self._in_thread(answered)
        return answered()

    async def _newest(self) -> State:
        try:
            return await asyncio.wait_for(asyncio.wrap_future(self._registry.ask()), WITHIN_S)
        except TimeoutError as error:
            raise RetryError(f"no answer within {WITHIN_S:g} s", place="the store") from error

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


async def overloaded(request: Request) -> Response:
    """Answer a request on a connection above the limit with 503."""
    message = "the server has too many connections; try again later"
    refusal = HttpError(503, message=message, headers=((b"connection", b"close"),))
    return _refused(request, refusal, media_of(request.headers.get(b"accept", "")))


def _decided(route: Route, state: State, call: Call) -> Decided[Answer]:
    made = route.handler(state, call)
    return made if isinstance(made, Decided) else Decided(made)


def _with_aliases_resolved(state: State, route: Route, call: Call) -> Call:
    """A call with aliases replaced by their subjects."""
    if "subjects" in route.parts and "subject" in call.path:
        name = aliased(state, call.subject)
        return replace(call, path={**call.path, "subject": str(name)})
    if route.parts[:2] == ("schemas", "ids") and call.text("subject"):
        name = aliased(state, SubjectName.parse(call.text("subject")))
        query = [("subject", str(name)), *(p for p in call.query if p[0] != "subject")]
        return replace(call, query=query)
    return call


def _encoded(answer: Answer) -> bytes:
    if isinstance(answer, Text):
        return answer.text.encode()
    return json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode()


def _refused(request: Request, error: HttpError, media: str | None) -> Response:
    return _response(request, error.status, error.body, media, error.headers)


def _response(
    request: Request,
    status: int,
    body: bytes,
    media: str | None,
    headers: Iterable[Header] = (),
) -> Response:
    kind = [(b"content-type", (media or MEDIA_TYPE).encode())] if body else []
    length = [] if status == HTTPStatus.NO_CONTENT else [(b"content-length", b"%d" % len(body))]
    mark = (b"x-request-id", request_id(request.headers))
    return Response(status, (*kind, *length, *headers, mark), body)
