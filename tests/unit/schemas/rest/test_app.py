"""Malicious requests and failing clients: the registry keeps serving others."""

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pipeline.ids import ZnodePath
from pipeline.system_clock import SystemClock
from schemas.registry.limits import BODY_BYTES_MAX, REFERENCES_MAX
from schemas.registry.registry import Registry
from schemas.rest.app import RegistryApp
from schemas.rest.messages import Request
from tests.conformance.registry.scenario import INT, STRING, field_of, record
from tests.memory_store import MemoryStore, MemoryTree
from tests.unit.schemas.rest.running import Service, head, read_to_end, status_of

A = record(field_of("a"), name="A")
POST = "POST /subjects/s/versions"
JSON = "Content-Type: application/json"


@pytest.fixture
def service(caplog: pytest.LogCaptureFixture) -> Iterator[Service]:
    """A registry with one subject; no request may cause an internal error."""
    caplog.set_level(logging.WARNING)
    with Service() as running:
        assert running.register("s", STRING).status_code == 200
        yield running
    failed = [one for one in caplog.get_records("call") if one.name == "schemas.rest.app"]
    assert [one for one in failed if one.levelno >= logging.ERROR] == []


def _alive(service: Service) -> None:
    assert service.http.get("/subjects/s/versions").json() == [1]


# --- bodies: large, endless, slow, cut off ------------------------------------------------------


def test_a_too_large_body_is_refused(service: Service) -> None:
    """By the bytes received, for any announced length; the connection is closed."""
    answer = service.http.post("/subjects/s/versions", content=b" " * (BODY_BYTES_MAX + 1))
    assert (answer.status_code, answer.json()["error_code"]) == (413, 413)
    assert answer.headers["connection"] == "close"
    _alive(service)


def test_an_endless_body_is_refused(service: Service) -> None:
    """As soon as it is too large: reading ends."""
    with service.connect() as connection:
        connection.sendall(head(POST, JSON, "Transfer-Encoding: chunked"))
        connection.sendall(b"7fffffff\r\n" + b" " * (BODY_BYTES_MAX + 1))
        answer = read_to_end(connection)
    assert answer.startswith(b"HTTP/1.1 413 ")
    _alive(service)


def test_a_body_of_the_maximum_size_is_read(service: Service) -> None:
    """A schema that fits in a request and not in the store is refused as too large."""
    text = record(doc="x" * (BODY_BYTES_MAX - 200))
    answer = service.register("large", text)
    assert (answer.status_code, answer.json()["error_code"]) == (422, 42209)
    _alive(service)


def test_stalled_clients_do_not_block_others(service: Service) -> None:
    """Many that have sent one byte of a body wait; others get responses; then they continue."""
    body = json.dumps({"schema": STRING}).encode()
    waiting = [service.connect() for _ in range(40)]
    try:
        for one in waiting:
            one.sendall(head(POST, JSON, f"Content-Length: {len(body)}") + body[:1])
        for _ in range(3):
            _alive(service)
            assert service.register("s", STRING).json()["id"] == 1
        for one in waiting:
            one.sendall(body[1:])
        assert [status_of(one) for one in waiting] == [200] * len(waiting)
    finally:
        for one in waiting:
            one.close()


def test_a_stalled_body_times_out() -> None:
    """The response is 408, and the connection is closed."""
    registry = Registry(MemoryStore(MemoryTree()), ZnodePath("/schemas"))
    app = RegistryApp(registry, SystemClock(), body_within_s=0.01)

    async def never() -> bytes:
        await asyncio.Event().wait()
        raise AssertionError

    request = Request("POST", b"/subjects/s/versions", {}, never)
    answer = asyncio.run(app(request))
    app.close()
    registry.close()
    assert answer.status == 408
    assert (b"connection", b"close") in answer.headers


def test_a_stalled_request_head_times_out() -> None:
    """The connection is closed; one with complete requests is not."""
    with Service(head_within_s=0.5) as service, service.connect() as whole:
        for sent in (b"", b"GET /subjects HT", head("GET /subjects")[:-2]):
            whole.sendall(head("GET /schemas/types"))
            assert status_of(whole) == 200
            with service.connect() as half:
                half.sendall(sent)
                assert read_to_end(half) == b""


def test_a_request_that_is_no_http_is_refused(service: Service) -> None:
    """In the form of every other error, and the connection is closed."""
    with service.connect() as connection:
        connection.sendall(b"nonsense\r\n\r\n")
        answer = read_to_end(connection)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'{"error_code":400,"message":"Invalid HTTP request received."}' in answer
    _alive(service)


def test_a_connection_above_the_limit_is_refused() -> None:
    """In the form of every other error, and the connection is closed; the others are served."""
    with Service(connections_max=1) as service:
        assert service.register("s", STRING).status_code == 200
        with service.connect() as other:
            other.sendall(head("GET /subjects", "Accept: application/json"))
            answer = read_to_end(other)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"content-type: application/json\r\n" in answer
        body = json.loads(answer.partition(b"\r\n\r\n")[2])
        assert body == {
            "error_code": 503,
            "message": "the server has too many connections; try again later",
        }
        _alive(service)


def test_disconnected_clients_leave_no_resources(service: Service) -> None:
    """In the middle of a line, of a body, or before their response."""
    body = json.dumps({"schema": STRING}).encode()
    whole = head(POST, JSON, f"Content-Length: {len(body)}") + body
    for length in (1, 20, len(whole) - len(body), len(whole) - 1, len(whole)):
        with service.connect() as connection:
            connection.sendall(whole[:length])
    _alive(service)


# --- paths and queries ---------------------------------------------------------------------------

TARGETS = [
    ("/subjects/%FF/versions", 400),
    ("/subjects/%ED%A0%80/versions", 400),
    ("/subjects/%C3/versions", 400),
    ("/subjects/%/versions", 400),
    ("/subjects/%4/versions", 400),
    ("/subjects/%ZZ/versions", 400),
    ("/subjects/%u0041/versions", 400),
    ("/subjects?subjectPrefix=%FF", 400),
    ("/subjects?subjectPrefix=%G0", 400),
    ("/subjects?%=1", 400),
    ("/subjects/\xff/versions", 400),
    ("/subjects/a b/versions", 400),
    ("/subjects/%00/versions", 404),
    ("/subjects/%2F..%2F../versions", 404),
    ("/../../subjects", 404),
    ("/" * 10_000 + "subjects", 200),
    ("/subjects/" + "x" * 50_000 + "/versions", 404),
    ("/subjects?" + "a&" * 20_000, 200),
    ("/subjects?offset=2147483647", 200),
    ("/subjects?limit=" + "9" * 10_000, 404),
    ("/schemas/ids/" + "9" * 10_000, 404),
    ("/subjects/s/versions/" + "9" * 10_000, 422),
    ("*", 404),
    ("http://x/subjects", 200),
    ("http://x", 200),
]


def test_malformed_paths(service: Service) -> None:
    """Broken escapes, broken UTF-8, control characters, length: refused, or not found."""
    for target, status in TARGETS:
        with service.connect() as connection:
            connection.sendall(head(f"GET {target}", "Connection: close"))
            assert (target[:60], status_of(connection)) == (target[:60], status)
    _alive(service)


def test_a_head_above_the_size_limit_is_refused(service: Service) -> None:
    """Reading ends at the limit."""
    with service.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 60_000)
        connection.sendall(b"x" * 60_000)
        assert status_of(connection) == 400
    _alive(service)


# --- contents of a body --------------------------------------------------------------------------


def _nested(depth: int) -> str:
    return '{"type":"array","items":' * depth + INT + "}" * depth


BODIES: list[tuple[str, Any, int]] = [
    ("half a character in a property", {"metadata": {"properties": {"k": "\ud800"}}}, 400),
    ("half a character in a name of a property", {"metadata": {"properties": {"\udc00": ""}}}, 400),
    ("half a character in a reference", {"references": [{"subject": "\ud800"}]}, 400),
    ("half a character in the schema", {"schema": '"\ud800"'}, 400),
    ("both halves", {"metadata": {"properties": {"k": "\U0001f600"}}}, 200),
    ("half a character that the schema escapes", {"schema": record(doc="\ud800")}, 422),
    ("an escape of NUL in the schema", {"schema": record(doc="\0")}, 200),
    ("a schema of many levels", {"schema": _nested(5_000)}, 422),
    ("a schema of as many levels as there may be", {"schema": _nested(60)}, 200),
    ("a union of very many", {"schema": json.dumps(["null"] * 50_000)}, 422),
    ("an endless number", {"schema": f'{{"type":"int","x":{"9" * 5_000}}}'}, 422),
    ("a huge exponent", {"schema": '{"type":"int","x":1e400}'}, 422),
    ("a size beyond all", {"schema": '{"type":"fixed","name":"F","size":1e30}'}, 422),
    ("very many metadata", {"metadata": {"properties": {str(n): "" for n in range(20_000)}}}, 200),
    ("metadata of many levels", {"metadata": {"properties": {"k": [[[[]]]]}}}, 400),
]


def test_malformed_bodies(service: Service) -> None:
    """Each is refused or accepted, and none is an internal error."""
    for number, (what, body, status) in enumerate(BODIES):
        content = json.dumps({"schema": INT, **body}).encode()
        answer = service.http.post(f"/subjects/b{number}/versions", content=content)
        assert (what, answer.status_code) == (what, status), answer.text[:500]
    _alive(service)


def test_json_of_every_depth_gets_a_response(service: Service) -> None:
    """Also of the maximum depth that the JSON parser accepts."""
    for depth in (10, 100, 500, 800, 900, 950, 980, 990, 1_000, 2_000, 50_000):
        inner = "[" * depth + "]" * depth
        for key in ("schema", "schemaType", "version", "metadata", "references", "more"):
            answer = service.http.post(
                "/subjects/s/versions", content=f'{{"{key}":{inner}}}'.encode()
            )
            assert answer.status_code < 500, (depth, key, answer.text)
        for path, key in (("config", "compatibility"), ("mode", "mode")):
            answer = service.http.put(f"/{path}/s", content=f'{{"{key}":{inner}}}'.encode())
            assert answer.status_code < 500, (depth, key, answer.text)


def test_too_many_references_are_refused(service: Service) -> None:
    """Directly, and through others."""
    many = [{"name": f"n{n}", "subject": "s", "version": 1} for n in range(10_000)]
    answer = service.register("t", INT, references=many)
    assert (answer.status_code, answer.json()["error_code"]) == (422, 42209)
    assert service.register("r0", record(name="R0")).status_code == 200
    statuses = []
    for n in range(1, REFERENCES_MAX + 3):
        before = {"name": f"R{n - 1}", "subject": f"r{n - 1}", "version": 1}
        text = record(name=f"R{n}")
        statuses.append(service.register(f"r{n}", text, references=[before]).status_code)
    assert statuses[:REFERENCES_MAX] == [200] * REFERENCES_MAX
    assert statuses[REFERENCES_MAX] == 422
    _alive(service)


def test_cyclic_references_end(service: Service) -> None:
    """Names that refer to different schemas, and schemas that lead back to their own subject."""

    def to(name: str, subject: str, version: int = 1) -> dict[str, Any]:
        return {"name": name, "subject": subject, "version": version}

    uses_a = record(field_of("x", "A"), name="B")
    uses_b = record(field_of("y", "B"), name="C")
    assert service.register("a", A).status_code == 200
    assert service.register("b", uses_a, references=[to("same", "a")]).status_code == 200
    assert service.register("c", uses_b, references=[to("same", "b")]).status_code == 422
    again = record(field_of("y", ["null", "B"], default=None), field_of("a"), name="A")
    assert service.register("a", again, references=[to("B", "b")]).status_code == 422
    assert service.register("a", A, references=[to("A", "a", 2)]).status_code == 422
    _alive(service)


# --- isolation of clients -----------------------------------------------------------------------


def test_a_large_schema_does_not_block_others(service: Service) -> None:
    """While one with 5,000 fields is parsed and compared, others read."""
    fields = [field_of(f"f{n}", "string", default="") for n in range(5_000)]
    read = 0
    with ThreadPoolExecutor(1) as threads:
        for part in (fields, [*fields, field_of("more", default=0)]):
            registered = threads.submit(service.register, "large", record(*part))
            while not registered.done():
                _alive(service)
                read += not registered.done()
            assert registered.result().status_code == 200, registered.result().text
    assert read > 0


def test_a_slow_store_does_not_block_requests_without_it(service: Service) -> None:
    """While many wait for the store, the server accepts requests and refuses wrong ones."""
    entered, release = threading.Event(), threading.Event()
    sync = service.store.sync

    def slow() -> None:
        entered.set()
        assert release.wait(30)
        sync()

    service.store.sync = slow  # type: ignore[method-assign]
    with ThreadPoolExecutor(24) as threads:
        waiting = [threads.submit(service.http.get, "/subjects") for _ in range(20)]
        try:
            assert entered.wait(30)
            assert service.http.get("/nothing").status_code == 404
            assert service.http.put("/mode", content=b"{").status_code == 400
            assert not any(one.done() for one in waiting)
        finally:
            release.set()
        assert [one.result().json() for one in waiting] == [["s"]] * len(waiting)


def test_an_unavailable_store_is_reported(service: Service) -> None:
    """Requests fail with Confluent's code meanwhile; afterwards they succeed again."""
    service.store.suspend()
    for answer in (service.http.get("/subjects"), service.register("s", INT)):
        assert (answer.status_code, answer.json()["error_code"]) == (500, 50001)
    service.store.resume()
    _alive(service)
