import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from brokers.memory_store import MemoryStore, MemoryTree
from schemas.rest import BODY_BYTES_MAX, MEDIA_TYPE
from schemas.server import RegistryServer

A = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
AB = A.replace("]", ',{"name":"b","type":"int"}]')
AB_DEFAULT = A.replace("]", ',{"name":"b","type":"int","default":0}]')


class _Service:
    """A running registry, its store, and an HTTP client for it."""

    def __init__(self) -> None:
        self.store = MemoryStore(MemoryTree())
        self.server = RegistryServer(self.store, "127.0.0.1", 0)
        self.server.start()
        self.http = httpx.Client(base_url=self.server.url, trust_env=False, timeout=10)

    def post(self, path: str, schema: str = A, **more: Any) -> httpx.Response:
        return self.http.post(path, json={"schema": schema, **more})

    def close(self) -> None:
        self.http.close()
        self.server.stop()


@pytest.fixture
def service() -> Iterator[_Service]:
    """A registry on a free port, with one version of the subject s."""
    running = _Service()
    try:
        assert running.post("/subjects/s/versions").json() == {"id": 1}
        yield running
    finally:
        running.close()


ONE = {"subject": "s", "version": 1, "id": 1, "schema": A}

GETS: list[tuple[str, Any]] = [
    ("/", {}),
    ("/schemas/types", ["AVRO"]),
    ("/schemas/ids/1", {"schema": A}),
    ("/schemas/ids/1?subject=s&fetchMaxId=false", {"schema": A}),
    ("/schemas/ids/1/schema", json.loads(A)),
    ("/schemas/ids/1/versions", [{"subject": "s", "version": 1}]),
    ("/schemas/ids/1/subjects", ["s"]),
    ("/subjects", ["s"]),
    ("/subjects?subjectPrefix=t", []),
    ("/subjects/s/versions", [1]),
    ("/subjects/s/versions/1", ONE),
    ("/subjects/s/versions/latest", ONE),
    ("/subjects/s/versions/-1", ONE),
    ("/subjects/s/versions/1/schema", json.loads(A)),
    ("/config", {"compatibilityLevel": "BACKWARD"}),
    ("/config/s?defaultToGlobal=TRUE", {"compatibilityLevel": "BACKWARD"}),
    ("/mode", {"mode": "READWRITE"}),
    ("/mode/s", {"mode": "READWRITE"}),
]


def test_what_is_read(service: _Service) -> None:
    """Each path answers 200 with Confluent's media type and shape."""
    for path, expected in GETS:
        answer = service.http.get(path)
        assert (path, answer.status_code, answer.json()) == (path, 200, expected)
        assert answer.headers["content-type"] == MEDIA_TYPE


REFUSED: list[tuple[str, str, Any, int, int]] = [
    ("GET", "/nothing", None, 404, 404),
    ("DELETE", "/subjects/s", None, 405, 405),
    ("GET", "/schemas/ids/9", None, 404, 40403),
    ("GET", "/schemas/ids/x", None, 404, 40403),
    ("GET", "/schemas/ids/99999999999999999999999", None, 404, 40403),
    ("GET", "/schemas/ids/9/versions", None, 404, 40403),
    ("GET", "/subjects/t/versions", None, 404, 40401),
    ("GET", "/subjects/t/versions/1", None, 404, 40401),
    ("GET", "/subjects/s/versions/2", None, 404, 40402),
    ("GET", "/subjects/s/versions/0", None, 422, 42202),
    ("GET", "/subjects/s/versions/x", None, 422, 42202),
    ("GET", "/subjects/s/versions/99999999999999999999999", None, 422, 42202),
    ("POST", "/subjects/t", {"schema": A}, 404, 40401),
    ("POST", "/subjects/s", {"schema": AB}, 404, 40403),
    ("POST", "/subjects/s/versions", {"schema": AB}, 409, 40901),
    ("POST", "/subjects/s/versions", {"schema": '"integer"'}, 422, 42201),
    ("POST", "/subjects/s/versions", {"schema": ""}, 422, 42201),
    ("POST", "/subjects/s/versions", {"schema": {}}, 422, 42201),
    ("POST", "/subjects/s/versions", {}, 422, 42201),
    ("POST", "/subjects/s/versions", [], 400, 400),
    ("POST", "/subjects/s/versions", {"schema": A, "schemaType": "PROTOBUF"}, 422, 42201),
    ("POST", "/subjects/s/versions", {"schema": A, "references": [{}]}, 422, 42201),
    ("POST", "/subjects/s/versions", {"schema": A, "ruleSet": {"x": 1}}, 422, 42201),
    ("POST", "/subjects/s/versions", {"schema": A, "id": 7}, 422, 42205),
    ("POST", "/subjects/%0A/versions", {"schema": A}, 422, 42208),
    ("POST", "/compatibility/subjects/s/versions/2", {"schema": A}, 404, 40402),
    ("GET", "/config/s", None, 404, 40408),
    ("DELETE", "/config/s", None, 404, 40401),
    ("PUT", "/config", {"compatibility": "SIDEWAYS"}, 422, 42203),
    ("PUT", "/config", {}, 422, 42203),
    ("GET", "/associations/resources/-/cars?resourceType=topic", None, 404, 404),
]


def test_what_is_refused(service: _Service) -> None:
    """Each mistake has Confluent's status and code, and a message; nothing changes."""
    for method, path, body, status, code in REFUSED:
        answer = service.http.request(method, path, json=body)
        found = answer.json()
        assert (path, body, answer.status_code, found["error_code"]) == (path, body, status, code)
        assert found["message"]
        assert answer.headers["content-type"] == MEDIA_TYPE
    assert service.http.get("/subjects").json() == ["s"]
    assert service.http.get("/subjects/s/versions").json() == [1]


def test_register_and_look_up(service: _Service) -> None:
    """The same content is found again, in another spelling and with capital booleans."""
    spaced = json.dumps(json.loads(A), indent=1)
    assert service.post("/subjects/s/versions?normalize=False", spaced).json() == {"id": 1}
    assert service.post("/subjects/s?normalize=False&deleted=False", spaced).json() == ONE
    assert service.post("/subjects/t/versions", A, schemaType="AVRO", references=[]).json() == {
        "id": 1
    }


def test_compatibility(service: _Service) -> None:
    """The answer says whether, and with verbose why not; an unknown subject takes anything."""
    path = "/compatibility/subjects/s/versions/latest"
    assert service.post(path, AB_DEFAULT).json() == {"is_compatible": True}
    assert service.post(path, AB).json() == {"is_compatible": False}
    (message,) = service.post(f"{path}?verbose=True", AB).json()["messages"]
    assert "/fields/b" in message
    for other in ("/1", ""):
        answer = service.post(f"/compatibility/subjects/s/versions{other}?verbose=true", AB)
        assert answer.json() == {"is_compatible": False, "messages": [message]}
    unknown = service.post("/compatibility/subjects/new/versions/latest", AB)
    assert unknown.json() == {"is_compatible": True}


def test_levels(service: _Service) -> None:
    """Levels are set, shown and removed, in general and for a subject."""
    put = service.http.put("/config/s", json={"compatibility": "none"})
    assert put.json() == {"compatibility": "NONE"}
    assert service.http.get("/config/s").json() == {"compatibilityLevel": "NONE"}
    assert service.post("/subjects/s/versions", '"string"').json() == {"id": 2}
    assert service.http.delete("/config/s").json() == {"compatibilityLevel": "NONE"}
    assert service.http.get("/config/s").status_code == 404
    assert service.http.put("/config", json={"compatibility": "NONE"}).status_code == 200
    assert service.http.get("/config").json() == {"compatibilityLevel": "NONE"}


def test_subjects_may_hold_a_slash(service: _Service) -> None:
    """A slash that is written as %2F belongs to the subject."""
    assert service.post("/subjects/a%2Fb/versions").status_code == 200
    assert service.http.get("/subjects").json() == ["a/b", "s"]
    assert service.http.get("/subjects/a%2Fb/versions").json() == [1]


def test_bodies_are_limited(service: _Service) -> None:
    """A body that is too large is refused, and one that is not JSON too."""
    answer = service.http.post("/subjects/s/versions", content=b" " * (BODY_BYTES_MAX + 1))
    assert (answer.status_code, answer.json()["error_code"]) == (413, 413)
    answer = service.http.post("/subjects/s/versions", content=b"[" * 200_000)
    assert (answer.status_code, answer.json()["error_code"]) == (400, 400)
    large = json.dumps({"type": "string", "doc": "x" * (BODY_BYTES_MAX - 60_000)})
    answer = service.post("/subjects/large/versions", large)
    assert (answer.status_code, answer.json()["error_code"]) == (422, 42201)


def test_an_unreachable_store_is_said_so(service: _Service) -> None:
    """While the store is away, requests fail as unavailable; afterwards they work again."""
    service.store.suspend()
    answer = service.http.get("/subjects")
    assert (answer.status_code, answer.json()["error_code"]) == (503, 50001)
    service.store.resume()
    assert service.http.get("/subjects").json() == ["s"]


def test_a_slow_store_does_not_hold_up_others(service: _Service) -> None:
    """While one request waits for the store, another one is answered."""
    entered, release = threading.Event(), threading.Event()
    children = service.store.children

    def slow(path: str) -> tuple[str, ...]:
        entered.set()
        assert release.wait(20)
        return children(path)

    service.store.children = slow  # type: ignore[method-assign]
    answers: list[Any] = []

    def ask() -> None:
        answers.append(httpx.get(f"{service.server.url}/subjects", timeout=30).json())

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        assert entered.wait(20)
        assert service.http.get("/schemas/types").json() == ["AVRO"]
        assert answers == []
    finally:
        release.set()
        thread.join(20)
    assert answers == [["s"]]
