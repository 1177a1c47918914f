"""A registry in memory with Confluent's behaviour, as far as moves and administration need it."""

import hashlib
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx

from schemas.entries import SchemaUse, StoredVersion, context_of

Answer = tuple[int, Any]
CONTENT = ("schema", "schemaType", "references", "metadata", "ruleSet")


@dataclass(frozen=True)
class Request:
    """One parsed request."""

    method: str
    path: tuple[str, ...]
    query: dict[str, str]
    body: dict[str, Any]

    def flag(self, name: str) -> bool:
        """Whether a parameter is true."""
        return self.query.get(name, "").lower() == "true"


def error(code: int, message: str) -> Answer:
    """An error in the form of a registry."""
    return int(str(code)[:3]), {"error_code": code, "message": message}


@dataclass
class FakeRegistry:
    """Registered schemas, and every request.

    `broken` may respond to a request instead, to fail in the middle of an operation. `refused` is
    the reason why no new schema fits; empty: all do.
    """

    versions: dict[SchemaUse, dict[str, Any]] = field(default_factory=dict)
    configs: dict[str | None, dict[str, Any]] = field(default_factory=dict)
    modes: dict[str | None, str] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    page: int = 1000
    refused: tuple[str, ...] = ()
    broken: Callable[[Request], Answer | None] = lambda _: None

    def add(self, subject: str, text: str, **more: Any) -> dict[str, Any]:
        """Register a schema, at any mode and level."""
        number = self._newest(subject) + 1
        made = {"schema": text, "schemaType": "AVRO", "references": [], **more}
        known = [v["id"] for v in self.versions.values() if _content(v) == _content(made)]
        ids = [v["id"] for v in self.versions.values()]
        found = {"version": number, "id": known[0] if known else max(ids, default=0) + 1, **made}
        return self._keep(subject, found)

    def handle(self, request: httpx.Request) -> httpx.Response:
        """For `httpx.MockTransport`."""
        body = json.loads(request.content) if request.content else {}
        status, value = self.answer(request.method, request.url.raw_path.decode(), body)
        return httpx.Response(status, json=value)

    def answer(self, method: str, target: str, body: dict[str, Any]) -> Answer:
        """Status and value for a request."""
        url = urlsplit(target)
        path = tuple(unquote(part) for part in url.path.strip("/").split("/"))
        request = Request(method, path, dict(parse_qsl(url.query)), body)
        self.requests.append(request)
        return self.broken(request) or self._route(request)

    def _route(self, request: Request) -> Answer:  # noqa: PLR0911 - one for each route
        match request.path:
            case ("subjects",):
                return self._subjects(request)
            case ("subjects", subject, "versions", number, "referencedby"):
                return self._referencedby(request, SchemaUse(subject, int(number)))
            case ("subjects", subject, "versions", number):
                return self._version(request, subject, number)
            case ("subjects", subject, "versions") if request.method == "POST":
                return self._register(subject, request.body)
            case ("subjects", subject, "versions"):
                numbers = self._numbers(subject, deleted=request.flag("deleted"))
                return self._paged(request, numbers) if numbers else _no_subject(subject)
            case ("subjects", subject):
                return self._subject(request, subject)
            case ("compatibility", *_):
                return 200, {"is_compatible": not self.refused, "messages": [*self.refused]}
            case ("schemas", "ids", number, *rest) if int(number) < 2**31:
                return self._by_id(request, int(number), versions=bool(rest))
            case ("config" | "mode" as what, *scopes):
                return self._settings(request, what, scopes[0] if scopes else None)
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _paged(self, request: Request, items: list[Any]) -> Answer:
        requested = int(request.query.get("limit", "-1"))
        limit = requested if 0 < requested <= self.page else self.page
        start = int(request.query.get("offset", "0"))
        return 200, items[start : start + limit]

    def _subjects(self, request: Request) -> Answer:
        prefix = request.query.get("subjectPrefix", "")
        found = {
            use.subject
            for use, one in self.versions.items()
            if use.subject.startswith(prefix) and (request.flag("deleted") or not one["deleted"])
        }
        return self._paged(request, sorted(found))

    def _numbers(self, subject: str, *, deleted: bool) -> list[int]:
        return sorted(
            use.version
            for use, one in self.versions.items()
            if use.subject == subject and (deleted or not one["deleted"])
        )

    def _newest(self, subject: str) -> int:
        return max(self._numbers(subject, deleted=True), default=0)

    def _version(self, request: Request, subject: str, word: str) -> Answer:
        live = self._numbers(subject, deleted=False)
        number = (live[-1] if live else -1) if word == "latest" else int(word)
        found = self.versions.get(SchemaUse(subject, number))
        if not self._numbers(subject, deleted=True):
            return _no_subject(subject)
        if request.method == "DELETE":
            return self._delete_version(
                SchemaUse(subject, number), found, permanent=request.flag("permanent")
            )
        if found is None or (found["deleted"] and not request.flag("deleted")):
            return error(40402, f"Version {number} not found.")
        return 200, found

    def _subject(self, request: Request, subject: str) -> Answer:
        if request.method == "DELETE":
            return self._delete_subject(subject, permanent=request.flag("permanent"))
        return self._lookup(subject, request.body)

    def _lookup(self, subject: str, body: dict[str, Any]) -> Answer:
        for number in self._numbers(subject, deleted=False):
            found = self.versions[SchemaUse(subject, number)]
            if _content(found) == _content({"schemaType": "AVRO", **body}):
                return 200, found
        return error(40403, "Schema not found")

    def _register(  # noqa: PLR0911 - one return for each refusal
        self, subject: str, body: dict[str, Any]
    ) -> Answer:
        mode = self._in_scope("modes", subject) or "READWRITE"
        given_id = body.get("id", -1)
        if mode.startswith("READONLY"):
            return error(42205, f"Subject {subject} in context  is in read-only mode")
        if given_id >= 0 and mode != "IMPORT":
            return error(42205, f"Subject {subject} in context  is not in import mode")
        if given_id < 0 and mode != "READWRITE":
            return error(42205, f"Subject {subject} in context  is not in read-write mode")
        for one in body.get("references", ()):
            if SchemaUse(one["subject"].removeprefix(":.:"), one["version"]) not in self.versions:
                return error(42201, f"No schema reference found for subject {one['subject']}")
        status, found = self._lookup(subject, body)
        if given_id < 0 and status == httpx.codes.OK:
            return 200, {"id": found["id"]}
        if given_id < 0 and self.refused:
            return error(409, "Schema being registered is incompatible with an earlier schema")
        if given_id < 0:
            text = body["schema"]
            return 200, {"id": self.add(subject, text, references=body.get("references", []))["id"]}
        other = [v for v in self.versions.values() if v["id"] == given_id and _in(v, subject)]
        if any(_content(one) != _content(body) for one in other):
            return error(42205, f"Overwrite new schema with id {given_id} is not permitted.")
        return 200, {
            "id": self._keep(subject, {"version": self._newest(subject) + 1, **body})["id"]
        }

    def _keep(self, subject: str, made: dict[str, Any]) -> dict[str, Any]:
        digest = hashlib.md5(_content(made).encode(), usedforsecurity=False).digest()
        guid = str(uuid.UUID(bytes=digest))
        found = {"references": [], "subject": subject, "guid": guid, "deleted": False, **made}
        self.versions[SchemaUse(subject, found["version"])] = found
        return found

    def _delete_version(
        self, use: SchemaUse, found: dict[str, Any] | None, *, permanent: bool
    ) -> Answer:
        if found is None:
            return error(40402, f"Version {use.version} not found.")
        if found["deleted"] and not permanent:
            return error(40406, f"Subject '{use.subject}' Version {use.version} was soft deleted.")
        if self._referrers(use, deleted=permanent):
            return error(42206, "One or more references exist to the schema.")
        if permanent and not found["deleted"]:
            return error(40407, f"Subject '{use.subject}' Version {use.version} was not deleted")
        if permanent:
            del self.versions[use]
        else:
            found["deleted"] = True
        return 200, use.version

    def _delete_subject(self, subject: str, *, permanent: bool) -> Answer:
        numbers = self._numbers(subject, deleted=permanent)
        if not self._numbers(subject, deleted=True):
            return _no_subject(subject)
        if not numbers:
            return error(40404, f"Subject '{subject}' was soft deleted.")
        if permanent and self._numbers(subject, deleted=False):
            return error(40405, f"Subject '{subject}' was not deleted first")
        for number in numbers:
            use = SchemaUse(subject, number)
            answer = self._delete_version(use, self.versions[use], permanent=permanent)
            if answer[0] != httpx.codes.OK:
                return answer
        return 200, numbers

    def _referrers(self, to: SchemaUse, *, deleted: bool) -> list[int]:
        return sorted(
            {
                one["id"]
                for one in self.versions.values()
                if (deleted or not one["deleted"])
                and any(
                    (r["subject"], r["version"]) == (to.subject, to.version)
                    for r in one["references"]
                )
            }
        )

    def _referencedby(self, request: Request, to: SchemaUse) -> Answer:
        return self._paged(request, self._referrers(to, deleted=request.flag("deleted")))

    def _by_id(self, request: Request, number: int, *, versions: bool) -> Answer:
        scope = request.query.get("subject", "")
        found = [v for v in self.versions.values() if v["id"] == number and _in(v, scope)]
        if not found:
            return error(40403, f"Schema {number} not found")
        if versions:
            live = [v for v in found if request.flag("deleted") or not v["deleted"]]
            uses = [{"subject": v["subject"], "version": v["version"]} for v in live]
            return self._paged(request, uses)
        return 200, {key: value for key, value in found[0].items() if key != "id"}

    def _in_scope(self, what: str, subject: str) -> Any:
        of = getattr(self, what)
        context = context_of(subject) or None
        return of.get(subject) or of.get(context)

    def _settings(self, request: Request, what: str, scope: str | None) -> Answer:
        """Levels and modes; `what` is the route."""
        of: dict[str | None, Any] = getattr(self, f"{what}s")
        general = {"compatibilityLevel": "BACKWARD"} if what == "config" else "READWRITE"
        own = of.get(scope, general if scope is None else None)
        shape: Callable[[Any], Any] = (lambda v: v) if what == "config" else (lambda v: {"mode": v})
        if request.method == "PUT":
            of[scope] = self._put(what, scope, request)
            return 200, request.body
        if request.method == "DELETE" and own is None:
            return _no_subject(str(scope))
        if request.method == "DELETE":
            of.pop(scope, None)
        elif own is None and request.flag("defaultToGlobal"):
            return 200, shape(self._in_scope(f"{what}s", str(scope)) or general)
        elif own is None:
            return error(40408 if what == "config" else 40409, f"Subject '{scope}' has none")
        return 200, shape(own)

    def _put(self, what: str, scope: str | None, request: Request) -> Any:
        if what == "mode":
            if request.body["mode"] == "IMPORT" and not request.flag("force"):
                # As Confluent's: what was only deleted is removed.
                self.versions = {k: v for k, v in self.versions.items() if not v["deleted"]}
            return request.body["mode"]
        names = {"compatibility": "compatibilityLevel"}
        new = {names.get(key, key): value for key, value in request.body.items()}
        merged = {**self.configs.get(scope, {}), **new}
        return {key: value for key, value in merged.items() if value is not None}

    def entries(self) -> dict[SchemaUse, StoredVersion]:
        """The registered versions, to compare two registries."""
        return {
            use: StoredVersion(
                use.subject,
                use.version,
                one["id"],
                one["schema"],
                one["guid"],
                one["schemaType"],
                tuple(one["references"]),
                one.get("metadata"),
                one.get("ruleSet"),
                one["deleted"],
            )
            for use, one in self.versions.items()
        }


def _content(one: dict[str, Any]) -> str:
    """Null and empty are absent."""
    return json.dumps({key: one[key] for key in CONTENT if one.get(key)}, sort_keys=True)


def _in(one: dict[str, Any], scope: str) -> bool:
    return context_of(one["subject"]) == context_of(scope)


def _no_subject(subject: str) -> Answer:
    return error(40401, f"Subject '{subject}' not found.")


@contextmanager
def serving(registry: FakeRegistry) -> Iterator[str]:
    """The address at which a registry is served over HTTP."""

    class Handler(BaseHTTPRequestHandler):
        """Passes each request on."""

        def _do(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else {}
            status, value = registry.answer(self.command, self.path, body)
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = _do  # noqa: N815 - names of the base class

        def log_message(self, *_: object) -> None:
            """Tests log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
