import base64
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import count
from typing import Any

import httpx
import pytest

from brokers.access import Login
from brokers.records import KafkaRecord
from pipeline.errors import InputError, RefusedError, SchemaError, UnavailableError
from pipeline.ids import Millis, Offset, SchemaGuid, SchemaId, SchemaVersion, TopicName
from pipeline.operations.records.decoding import decode_record
from pipeline.secrets import Secret
from pipeline.settings import combine
from schemas import transport
from schemas.avro import parse
from schemas.client import RegistryClient
from schemas.records import IncompatibleSchemaError
from schemas.registry.content import Reference
from schemas.server import RegistryServer
from schemas.transport import ATTEMPTS_MAX, NotARegistryError, RegistryAddress, registry_address
from tests.memory_store import MemoryStore, MemoryTree

A = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
TOP = '{"type":"record","name":"Top","fields":[{"name":"r","type":"R"}]}'
AB = A.replace("]", ',{"name":"b","type":"int"}]')
TO_R = (Reference("R", "r", 1),)
AB_DEFAULT = A.replace("]", ',{"name":"b","type":"int","default":0}]')


class _Clock:
    """Time that passes only by waiting."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def now_ms(self) -> Millis:
        return Millis(int(self.now_s * 1000))

    def monotonic_s(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


class _Other:
    """A foreign registry: returns given responses, and counts."""

    def __init__(self, answer: Callable[[httpx.Request], httpx.Response]) -> None:
        self.requests: list[httpx.Request] = []
        self.clock = _Clock()

        def handle(request: httpx.Request) -> httpx.Response:
            self.requests.append(request)
            return answer(request)

        self.client = RegistryClient(
            "http://user:secret@localhost/base",
            timeout_s=2,
            transport=httpx.MockTransport(handle),
            clock=self.clock,
        )


def _always(status: int, value: Any) -> _Other:
    return _Other(lambda _: httpx.Response(status, json=value))


@pytest.fixture
def client() -> Iterator[RegistryClient]:
    """A client of our own registry, over HTTP."""
    server = RegistryServer(MemoryStore(MemoryTree()), "127.0.0.1", 0)
    server.start()
    made = RegistryClient(server.url)
    try:
        yield made
    finally:
        made.close()
        server.stop()


def test_with_our_own_registry(client: RegistryClient) -> None:
    """All calls of the client, end to end."""
    assert client.register("s", A) == 1
    assert client.register("s", AB_DEFAULT) == 2
    assert client.register("a/b", A) == 1
    assert client.subjects() == ("a/b", "s")
    assert client.lookup("s", json.dumps(json.loads(A), indent=1)) == 1
    assert client.lookup("s", AB) is None
    assert client.lookup("no", A) is None
    assert [(one.version, one.id, one.text) for one in client.readable_versions("s")] == [
        (1, 1, A),
        (2, 2, AB_DEFAULT),
    ]
    assert client.readable_versions("no") == ()
    latest = client.latest("s")
    assert latest is not None
    assert latest == client.get("s", SchemaVersion(2))
    assert client.latest("no") is None
    assert client.get("s", SchemaVersion(3)) is None
    found = client.schema_of(SchemaId(1))
    assert found is not None
    assert found.text == A
    assert client.schema_of(SchemaId(3)) is None


def test_an_invalid_id_is_no_wrong_address(client: RegistryClient) -> None:
    """Any record may contain it; registries respond to it as to an unknown path."""
    for schema_id in (2**31 - 1, 2**31, 2**32 - 1):
        assert client.schema_of(SchemaId(schema_id)) is None
        assert client.admin.by_id(schema_id) is None
        assert client.admin.uses(schema_id) == ()
    at = (TopicName("cars"), 0, Offset(0), Millis(0))
    found = decode_record(KafkaRecord(*at, None, b"\0" + b"\xff" * 9, ()), client)
    assert found.problem == "the registry has no schema with id 4294967295"


def test_incompatible_schemas(client: RegistryClient) -> None:
    """Check and register return the same reasons; an unknown subject accepts anything."""
    client.register("s", A)
    assert client.check("s", AB_DEFAULT) == ()
    assert client.check("no", AB) == ()
    reasons = client.check("s", AB)
    assert "/fields/b" in reasons[0]
    with pytest.raises(IncompatibleSchemaError) as caught:
        client.register("s", AB)
    assert caught.value.reasons == reasons
    with pytest.raises(SchemaError, match="unknown type"):
        client.check("s", '"integer"')


def test_a_check_compares_with_all_versions_where_supported() -> None:
    """An older registry compares with the newest."""
    requests: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if "/compatibility/" not in request.url.path:
            return httpx.Response(404, json={"error_code": 40401, "message": "not found"})
        requests.append(request.url.path)
        if request.url.path.endswith("/versions") and len(requests) > 1:
            return httpx.Response(404, json={"error_code": 404, "message": "HTTP 404 Not Found"})
        return httpx.Response(200, json={"is_compatible": False, "messages": ["no"]})

    client = _Other(answer).client
    assert client.check("s", A) == ("no",)
    assert client.check("s", A) == ("no",)
    path = "/base/compatibility/subjects/s/versions"
    assert requests == [path, path, f"{path}/latest"]


def test_immutable_responses_are_cached() -> None:
    """A schema by its id, and the id of a registered schema; not a missing one."""
    other = _always(200, {"id": 5, "schema": A})
    for _ in range(3):
        assert other.client.schema_of(SchemaId(5)) is not None
        assert other.client.register("s", A) == 5
    assert len(other.requests) == 2
    missing = _always(404, {"error_code": 40403, "message": "Schema not found"})
    for _ in range(2):
        assert missing.client.schema_of(SchemaId(5)) is None
    assert len(missing.requests) == 2


def test_requests_have_the_expected_form() -> None:
    """Below the base path, with user and password, the media type, and the text as the body."""
    other = _always(200, {"id": 5})
    other.client.register("a/b", f" {A} ")
    (request,) = other.requests
    assert request.url.raw_path == b"/base/subjects/a%2Fb/versions"
    assert request.headers["authorization"].startswith("Basic ")
    assert request.headers["content-type"] == "application/vnd.schemaregistry.v1+json"
    assert json.loads(request.content) == {"schema": A}


def test_a_temporary_failure_is_retried() -> None:
    """A server that starts up responds 503 first; the call succeeds in the end."""
    answers = iter([httpx.Response(503), httpx.Response(200, json=["s"])])
    other = _Other(lambda _: next(answers))
    assert other.client.subjects() == ("s",)
    assert len(other.requests) == 2


def test_a_permanent_failure_is_unavailable_within_a_bound() -> None:
    """A limited number of attempts and time, then an error that hides the password."""
    other = _always(500, {"error_code": 50001, "message": "store is down"})
    with pytest.raises(UnavailableError, match="answers 500 store is down") as caught:
        other.client.subjects()
    assert len(other.requests) == ATTEMPTS_MAX
    assert other.clock.now_s <= 2
    assert "secret" not in str(caught.value)
    assert "localhost/base" in caught.value.place


def test_a_failed_connection_is_unavailable() -> None:
    """It is retried, then reported."""

    def fail(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    other = _Other(fail)
    with pytest.raises(UnavailableError, match="does not answer: refused"):
        other.client.schema_of(SchemaId(1))
    assert len(other.requests) == ATTEMPTS_MAX


def test_a_slow_registry_uses_up_the_deadline() -> None:
    """After the deadline there is no further attempt."""
    other: _Other

    def slow(request: httpx.Request) -> httpx.Response:
        other.clock.sleep(2)
        raise httpx.ReadTimeout("timed out", request=request)

    other = _Other(slow)
    with pytest.raises(UnavailableError, match="timed out"):
        other.client.subjects()
    assert len(other.requests) == 1


class _Chunks(httpx.SyncByteStream):
    """A body that arrives in chunks."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._pieces)


def test_a_trickling_response_uses_up_the_deadline() -> None:
    """Each chunk arrives before the timeout of the connection; all of them would take hours."""
    other: _Other

    def trickle() -> Iterator[bytes]:
        for _ in range(10_000):
            other.clock.sleep(1)
            yield b" "

    other = _Other(lambda _: httpx.Response(200, stream=_Chunks(trickle())))
    with pytest.raises(UnavailableError, match="did not answer in full within 2 s"):
        other.client.subjects()
    assert other.clock.now_s <= 3
    assert len(other.requests) == 1


def test_an_endless_response_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor requested again; a redirection with such a body is not read at all."""
    monkeypatch.setattr(transport, "ANSWER_BYTES_MAX", 10_000)
    endless = (b" " * 1000 for _ in count())
    other = _Other(lambda _: httpx.Response(200, stream=_Chunks(endless)))
    with pytest.raises(NotARegistryError, match="more than 10000 bytes"):
        other.client.subjects()
    assert len(other.requests) == 1
    first = httpx.Response(302, headers={"Location": "/there"}, stream=_Chunks(endless))
    answers = iter([first, httpx.Response(200, json=["s"])])
    other = _Other(lambda _: next(answers))
    assert other.client.subjects() == ("s",)
    assert [one.url.path for one in other.requests] == ["/base/subjects", "/there"]
    assert all("authorization" in one.headers for one in other.requests)


def test_credentials_are_not_sent_to_another_server() -> None:
    """And a server that redirects without end is no registry."""
    other = _Other(
        lambda _: httpx.Response(302, headers={"Location": "http://elsewhere.example/x"})
    )
    with pytest.raises(NotARegistryError, match="answers 302"):
        other.client.subjects()
    assert ["authorization" in one.headers for one in other.requests[:2]] == [True, False]
    assert len(other.requests) < 10


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"schema":"\\"int\\"","x":' + b"[" * 100 + b"]" * 100 + b"}",
        b'{"schema":"\\"int\\"","x":' + b"9" * 5000 + b"}",
        b'{"schema":"\\"int\\"","x":NaN}',
        b'{"schema":"\\"int\\"","subject":"\\ud800"}',
        b'{"schema":"\xff"}',
    ],
)
def test_json_that_no_registry_writes_is_no_response(content: bytes) -> None:
    """It ends no lane by an unexpected error."""
    other = _Other(lambda _: httpx.Response(200, content=content))
    with pytest.raises(NotARegistryError, match="does not answer as a schema registry does"):
        other.client.schema_of(SchemaId(1))


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(404, text="<html>not found</html>"),
        httpx.Response(404, json={"error_code": 404, "message": "HTTP 404 Not Found"}),
        httpx.Response(200, text="<html>welcome</html>"),
        httpx.Response(200, json=[]),
        httpx.Response(200, json={"schema": 5}),
        httpx.Response(405, json={"error_code": 405, "message": "Method Not Allowed"}),
    ],
)
def test_a_foreign_server_never_means_a_missing_schema(answer: httpx.Response) -> None:
    """A wrong address must not make records undecodable."""
    with pytest.raises(UnavailableError):
        _Other(lambda _: answer).client.schema_of(SchemaId(1))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"schemaType": "PROTOBUF"}, "PROTOBUF, only Avro"),
        ({"references": [{"name": "x"}]}, "without name, subject and version"),
    ],
)
def test_unreadable_schemas_have_distinct_errors(more: dict[str, Any], message: str) -> None:
    """Another type of schema, or one with malformed references, is a SchemaError."""
    other = _always(200, {"schema": A, **more})
    with pytest.raises(SchemaError, match=message):
        other.client.schema_of(SchemaId(1))


def test_a_schema_of_another_context_is_not_the_requested_one(client: RegistryClient) -> None:
    """Registries find the name there, too; the id is of another schema here."""
    client.register("other", A)
    there = client.register(":.c:s", AB)
    assert client.lookup("s", AB) is None
    assert client.latest("s") is None
    assert client.get("s", SchemaVersion(1)) is None
    assert client.lookup(":.c:s", AB) == there
    with closing(RegistryClient(f"{client.url}/contexts/.c")) as in_context:
        assert in_context.lookup("s", AB) == there
        assert in_context.latest("s") is not None
    assert client.register("s", AB) != there


def test_references_of_a_guid_are_in_its_context(client: RegistryClient) -> None:
    """Though the default one has another schema of the name."""
    client.register("r", A)
    client.register(":.c:r", AB)
    client.register(":.c:top", TOP, TO_R)
    stored = client.admin.version(":.c:top", 1)
    assert stored is not None
    guid = SchemaGuid(stored.guid)
    for address, expected in (("", AB), ("/contexts/.c", AB), ("/contexts/.d", AB)):
        with closing(RegistryClient(f"{client.url}{address}")) as other:
            found = other.schema_of(guid)
        assert found is not None
        assert found.names["R"] == parse(expected).names["R"]
    client.register("top", TOP, TO_R)
    for address, expected in (("", A), ("/contexts/.c", AB), ("/contexts/.d", A)):
        with closing(RegistryClient(f"{client.url}{address}")) as other:
            found = other.schema_of(guid)
        assert found is not None
        assert found.names["R"] == parse(expected).names["R"]


def test_a_conflict_without_reasons_has_the_message_of_the_registry() -> None:
    """Older registries return one message and no list."""

    def answer(request: httpx.Request) -> httpx.Response:
        if b"/compatibility/" in request.url.raw_path:
            return httpx.Response(200, json={"is_compatible": True})
        return httpx.Response(409, json={"error_code": 409, "message": "incompatible"})

    with pytest.raises(IncompatibleSchemaError) as caught:
        _Other(answer).client.register("s", A)
    assert caught.value.reasons == ("incompatible",)


def test_a_refused_schema_is_a_schema_error() -> None:
    """One that the registry does not accept, although it is parsed here."""
    other = _always(422, {"error_code": 42201, "message": "too long"})
    with pytest.raises(SchemaError, match="refuses it: too long"):
        other.client.register("s", A)


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "does not accept our credentials"), (403, "does not allow this to us")],
)
def test_a_login_refused_by_a_registry(status: int, words: str) -> None:
    """There is no retry, and the error names the setting."""
    other = _always(status, {"error_code": status, "message": "no"})
    with pytest.raises(RefusedError, match=words) as caught:
        other.client.subjects()
    assert len(other.requests) == 1
    assert "registry.user" in caught.value.hint
    assert "secret" not in str(caught.value)


def test_credentials_are_sent() -> None:
    """As basic authentication, with any characters."""
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["Authorization"])
        return httpx.Response(200, json=[])

    address = RegistryAddress("http://localhost", Login("me", Secret("a:b é")))
    RegistryClient(address, transport=httpx.MockTransport(answer)).subjects()
    assert seen == ["Basic " + base64.b64encode("me:a:b é".encode()).decode()]


def test_certificates_without_https_are_refused() -> None:
    """They would suggest an encryption that does not exist."""
    settings = combine((("test", {"registry.tls.ca": "ca.pem"}),))
    with pytest.raises(InputError, match="no https"):
        registry_address(settings)


@pytest.mark.parametrize("url", ["", "registry:8081", "ftp://x", "http://"])
def test_malformed_addresses(url: str) -> None:
    """A wrong address is named at once."""
    with pytest.raises(RefusedError, match="not an address"):
        RegistryClient(url)
