"""The registry over HTTP, as Confluent's clients speak to one.

Paths, media type, error codes and the shape of answers are Confluent's. What changes or reads the
store runs in worker threads, so that a slow store never holds up the event loop. Handlers are plain
functions of (registry, call) → JSON value; `_ROUTES` is the whole list of what is served.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pipeline.errors import MedusaError, RefusedError, RetryError, SchemaError, UnavailableError
from pipeline.ids import SchemaId, SchemaVersion
from schemas.records import (
    BadLevelError,
    BadSubjectError,
    IncompatibleSchemaError,
    RegisteredSchema,
)
from schemas.registry import Registry
from schemas.types import INT_MAX

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
BODY_BYTES_MAX = 1_000_000
"""More than the store takes in one step; larger bodies are refused before they are read."""
SCHEMA_TYPES = ["AVRO"]
MODE = "READWRITE"


class RestError(Exception):
    """An answer other than 200: HTTP status, Confluent's error code, message."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Call:
    """What a handler sees of a request; `body` is the JSON object, empty without one."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any]

    def flag(self, name: str) -> bool:
        """A boolean of the query, in any case of letters; absent means false."""
        return self.query.get(name, "").casefold() == "true"

    @property
    def subject(self) -> str:
        """The subject in the path."""
        return self.path["subject"]


Handler = Callable[[Registry, Call], Any]

_ERRORS: tuple[tuple[type[MedusaError], int, int], ...] = (
    (IncompatibleSchemaError, 409, 40901),
    (BadSubjectError, 422, 42208),
    (BadLevelError, 422, 42203),
    (SchemaError, 422, 42201),
    (RefusedError, 422, 42201),
    (UnavailableError, 503, 50001),
    (RetryError, 503, 50002),
    (MedusaError, 500, 50001),
)
"""The first row whose class fits says status and code."""


def _rest_error(error: MedusaError) -> RestError:
    status, code = next((row[1], row[2]) for row in _ERRORS if isinstance(error, row[0]))
    message = f"{error.place}: {error.message}" if error.place else error.message
    return RestError(status, code, message)


def _no_subject(subject: str) -> RestError:
    return RestError(404, 40401, f"Subject '{subject}' not found.")


def _schema_text(call: Call) -> str:
    """The schema in a body; what would be lost without a word is refused instead."""
    text = call.body.get("schema")
    if not isinstance(text, str) or not text.strip():
        raise RestError(422, 42201, 'the body has no "schema", which is a text')
    kind = call.body.get("schemaType") or "AVRO"
    if kind not in SCHEMA_TYPES:
        raise RestError(422, 42201, f"schemas of type {kind} are not served, only AVRO")
    for key in ("references", "metadata", "ruleSet"):
        if call.body.get(key):
            raise RestError(422, 42201, f'"{key}" of schemas is not served here')
    for key in ("id", "version"):
        if call.body.get(key) not in {None, 0, -1}:
            raise RestError(422, 42205, f'"{key}" can be given in import mode only')
    return text


def _number(text: str) -> SchemaVersion | None:
    """A version in a path; None for the latest."""
    if text in {"latest", "-1"}:
        return None
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:11]) <= INT_MAX:
        raise RestError(
            422,
            42202,
            f"The specified version '{text}' is not a valid version id: a whole number "
            'from 1, or "latest".',
        )
    return SchemaVersion(int(text))


def _version(registry: Registry, call: Call) -> RegisteredSchema:
    number = _number(call.path["version"])
    found = registry.version(call.subject, number)
    if found is not None:
        return found
    if registry.version(call.subject, None) is None:
        raise _no_subject(call.subject)
    raise RestError(404, 40402, f"Version {number} not found.")


def _id(call: Call) -> SchemaId:
    text = call.path["id"]
    if not text.isascii() or not text.isdecimal() or int(text[:11]) > INT_MAX:
        raise RestError(404, 40403, f"Schema {text} not found: an id is a whole number")
    return SchemaId(int(text))


def _by_id(registry: Registry, call: Call) -> str:
    text = registry.text(_id(call))
    if text is None:
        raise RestError(404, 40403, f"Schema {call.path['id']} not found")
    return text


def _shown(found: RegisteredSchema) -> dict[str, Any]:
    return {
        "subject": found.subject,
        "version": found.version,
        "id": found.id,
        "schema": found.text,
    }


def _root(_: Registry, __: Call) -> Any:
    return {}


def _types(_: Registry, __: Call) -> Any:
    return SCHEMA_TYPES


def _mode(_: Registry, __: Call) -> Any:
    return {"mode": MODE}


def _no_association(_: Registry, call: Call) -> Any:
    """Newer clients ask for a topic's subject first, and take 404 for "by the usual rule"."""
    raise RestError(404, 404, f"no associations for {call.path['name']}")


def _schema_by_id(registry: Registry, call: Call) -> Any:
    return {"schema": _by_id(registry, call)}


def _schema_of_id(registry: Registry, call: Call) -> Any:
    return json.loads(_by_id(registry, call))


def _versions_of_id(registry: Registry, call: Call) -> Any:
    _by_id(registry, call)
    return [{"subject": subject, "version": v} for subject, v in registry.uses(_id(call))]


def _subjects_of_id(registry: Registry, call: Call) -> Any:
    _by_id(registry, call)
    return sorted({subject for subject, _ in registry.uses(_id(call))})


def _subjects(registry: Registry, call: Call) -> Any:
    prefix = call.query.get("subjectPrefix", "")
    return [subject for subject in registry.subjects() if subject.startswith(prefix)]


def _lookup(registry: Registry, call: Call) -> Any:
    found = registry.lookup(call.subject, _schema_text(call))
    if found is not None:
        return _shown(found)
    if registry.version(call.subject, None) is None:
        raise _no_subject(call.subject)
    raise RestError(404, 40403, "Schema not found")


def _register(registry: Registry, call: Call) -> Any:
    return {"id": registry.register(call.subject, _schema_text(call)).id}


def _versions(registry: Registry, call: Call) -> Any:
    found = registry.versions(call.subject)
    if not found:
        raise _no_subject(call.subject)
    return [one.version for one in found]


def _one_version(registry: Registry, call: Call) -> Any:
    return _shown(_version(registry, call))


def _schema_of_version(registry: Registry, call: Call) -> Any:
    return json.loads(_version(registry, call).text)


def _compatibility(registry: Registry, call: Call) -> Any:
    """Against one version, or as a registration would be judged where the path names none."""
    number = None
    if call.path.get("version", "latest") not in {"latest", "-1"}:
        number = _version(registry, call).version
    elif "version" in call.path:
        latest = registry.version(call.subject, None)
        number = latest.version if latest else None
    reasons = registry.check(call.subject, _schema_text(call), number)
    answer: dict[str, Any] = {"is_compatible": not reasons}
    if call.flag("verbose"):
        answer["messages"] = list(reasons)
    return answer


def _get_level(registry: Registry, _: Call) -> Any:
    return {"compatibilityLevel": registry.level().value}


def _get_own_level(registry: Registry, call: Call) -> Any:
    own = registry.own_level(call.subject)
    if own is None and not call.flag("defaultToGlobal"):
        message = f"Subject '{call.subject}' does not have subject-level compatibility configured"
        raise RestError(404, 40408, message)
    return {"compatibilityLevel": (own or registry.level()).value}


def _put_level(registry: Registry, call: Call) -> Any:
    level = call.body.get("compatibility")
    if not isinstance(level, str):
        raise RestError(422, 42203, 'the body has no "compatibility", which is a text')
    return {"compatibility": registry.set_level(call.path.get("subject"), level).value}


def _delete_level(registry: Registry, call: Call) -> Any:
    own = registry.own_level(call.subject)
    if own is None:
        raise _no_subject(call.subject)
    registry.set_level(call.subject, None)
    return {"compatibilityLevel": own.value}


_ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/", _root),
    ("GET", "/schemas/types", _types),
    ("GET", "/schemas/ids/{id}", _schema_by_id),
    ("GET", "/schemas/ids/{id}/schema", _schema_of_id),
    ("GET", "/schemas/ids/{id}/versions", _versions_of_id),
    ("GET", "/schemas/ids/{id}/subjects", _subjects_of_id),
    ("GET", "/subjects", _subjects),
    ("POST", "/subjects/{subject}", _lookup),
    ("GET", "/subjects/{subject}/versions", _versions),
    ("POST", "/subjects/{subject}/versions", _register),
    ("GET", "/subjects/{subject}/versions/{version}", _one_version),
    ("GET", "/subjects/{subject}/versions/{version}/schema", _schema_of_version),
    ("POST", "/compatibility/subjects/{subject}/versions", _compatibility),
    ("POST", "/compatibility/subjects/{subject}/versions/{version}", _compatibility),
    ("GET", "/config", _get_level),
    ("PUT", "/config", _put_level),
    ("GET", "/config/{subject}", _get_own_level),
    ("PUT", "/config/{subject}", _put_level),
    ("DELETE", "/config/{subject}", _delete_level),
    ("GET", "/mode", _mode),
    ("GET", "/mode/{subject}", _mode),
    ("GET", "/associations/resources/{namespace}/{name}", _no_association),
)


def _answer(status: int, value: Any) -> Response:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return Response(text.encode(), status_code=status, media_type=MEDIA_TYPE)


def _answer_error(error: RestError) -> Response:
    return _answer(error.status, {"error_code": error.code, "message": error.message})


async def _body(request: Request) -> Mapping[str, Any]:
    """The JSON object that a request carries; refused when it is too large or something else."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > BODY_BYTES_MAX:
            raise RestError(413, 413, f"a body has at most {BODY_BYTES_MAX} bytes")
        chunks.append(chunk)
    try:
        value = json.loads(b"".join(chunks))
    except (ValueError, RecursionError):
        raise RestError(400, 400, "the body is not JSON") from None
    if not isinstance(value, dict):
        raise RestError(400, 400, "the body is not a JSON object")
    return value


def _endpoint(registry: Registry, handler: Handler) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        try:
            body = await _body(request) if request.method in {"POST", "PUT"} else {}
            path = {name: unquote(value) for name, value in request.path_params.items()}
            call = Call(path, dict(request.query_params), body)
            return _answer(HTTPStatus.OK, await run_in_threadpool(handler, registry, call))
        except RestError as error:
            return _answer_error(error)
        except MedusaError as error:
            return _answer_error(_rest_error(error))
        except ClientDisconnect:
            return Response(status_code=HTTPStatus.BAD_REQUEST)

    return endpoint


async def _http_error(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return _answer_error(RestError(status, status, f"HTTP {status} {HTTPStatus(status).phrase}"))


class _EncodedPath:
    """Routes on the path as it was sent, so that a subject may hold a slash written as %2F."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("raw_path"):
            scope = {**scope, "path": scope["raw_path"].decode("latin-1")}
        await self._app(scope, receive, send)


def create_app(registry: Registry) -> ASGIApp:
    """The registry as an ASGI application."""
    routes = [
        Route(path, _endpoint(registry, handler), methods=[method])
        for method, path, handler in _ROUTES
    ]
    return _EncodedPath(
        Starlette(routes=routes, exception_handlers={HTTPException: _http_error, 500: _http_error})
    )
