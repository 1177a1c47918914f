"""Access control of the REST interface: logins, and roles for prefixes of subject names."""

import json
import logging
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest

from schemas.rest.access import Access, Role, User
from tests.conformance.registry.scenario import INT, STRING, field_of, record
from tests.unit.schemas.rest.running import Service

PASSWORD = "correct horse: battery"
USERS = (
    User("root", PASSWORD, {"": Role.ADMIN}),
    User("reader", PASSWORD, {"": Role.READ}),
    User("cars", PASSWORD, {"cars-": Role.WRITE, "shared-": Role.READ}),
    User("line", PASSWORD, {":.line:": Role.ADMIN}),
    User("nobody", PASSWORD, {}),
)
GOOD = {"schema": STRING}
TO_BOATS = {"schema": INT, "references": [{"name": "n", "subject": "boats-value", "version": 1}]}
TO_SHARED = {"schema": INT, "references": [{"name": "n", "subject": "shared-x", "version": 1}]}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """A registry with schemas of several subjects and contexts, and users."""
    with Service(Access(USERS)) as running:
        for subject, schema in (
            ("cars-value", INT),
            ("boats-value", '"long"'),
            ("boats-too", INT),
            ("shared-x", '"bytes"'),
            (":.line:cars", '"float"'),
        ):
            assert _request(
                running, "root", f"POST /subjects/{subject}/versions", {"schema": schema}
            )
        yield running


def _request(service: Service, user: str, request: str, body: Any = None) -> Any:
    """The response to a user; a number is the status of a refusal."""
    method, _, path = request.partition(" ")
    answer = service.http.request(method, path, json=body, auth=(user, PASSWORD))
    assert PASSWORD not in answer.text
    return answer.status_code if answer.status_code >= 400 else answer.json()


def _login(name: str, password: str) -> str:
    return "Basic " + b64encode(f"{name}:{password}".encode()).decode()


NO_LOGINS = [
    "",
    "Basic",
    "Basic !",
    "Basic /w==",
    "Basic \xe9\xe9",
    "Basic " + b64encode(b"root").decode(),
    _login("root", ""),
    _login("root", PASSWORD[:-1]),
    _login("root", PASSWORD + " "),
    _login("ROOT", PASSWORD),
    _login("", ""),
    _login("", PASSWORD),
    _login("somebody", PASSWORD),
    _login("root\0", PASSWORD),
    "Bearer " + b64encode(f"root:{PASSWORD}".encode()).decode(),
    PASSWORD,
]


def test_an_unauthenticated_request_is_refused_with_401(service: Service) -> None:
    """With the scheme, for any target; the response contains nothing of the request."""
    for header in NO_LOGINS:
        headers = {b"authorization": header.encode("latin-1")} if header else {}
        for method, path in (("GET", "/"), ("GET", "/subjects"), ("POST", "/subjects/s/versions")):
            answer = service.http.request(method, path, headers=headers)
            assert (header, answer.status_code) == (header, 401)
            assert answer.json() == {"error_code": 401, "message": "Unauthorized"}
            assert answer.headers["www-authenticate"] == 'Basic realm="SchemaRegistry"'


def test_a_user_with_a_password_is_authenticated(service: Service) -> None:
    """The scheme is case-insensitive; a password may contain colons."""
    for scheme in ("Basic", "basic", "BASIC"):
        login = _login("root", PASSWORD).replace("Basic", scheme)
        assert service.http.get("/", headers={"authorization": login}).status_code == 200


REQUESTS: list[tuple[str, str, Any, Any]] = [
    ("nobody", "GET /", None, {}),
    ("nobody", "GET /schemas/types", None, ["AVRO"]),
    ("nobody", "GET /subjects", None, 403),
    ("nobody", "GET /schemas/ids/1", None, 403),
    ("nobody", "GET /config", None, 403),
    ("reader", "GET /subjects/cars-value/versions", None, [1]),
    ("reader", "POST /subjects/cars-value", {"schema": INT}, ...),
    ("reader", "POST /compatibility/subjects/cars-value/versions", GOOD, {"is_compatible": False}),
    ("reader", "POST /subjects/cars-value/versions", {"schema": INT}, 403),
    ("reader", "DELETE /subjects/cars-value", None, 403),
    ("reader", "PUT /config", {"compatibility": "NONE"}, 403),
    ("reader", "PUT /mode/cars-value", {"mode": "READONLY"}, 403),
    ("cars", "POST /subjects/cars-new/versions", {"schema": INT}, ...),
    ("cars", "POST /subjects/:.:cars-new/versions", {"schema": INT}, ...),
    ("cars", "POST /subjects/boats-value/versions", {"schema": INT}, 403),
    ("cars", "POST /subjects/shared-x/versions", {"schema": INT}, 403),
    ("cars", "POST /subjects/cars-y/versions", TO_BOATS, 403),
    ("cars", "POST /subjects/cars-y", TO_BOATS, 403),
    ("cars", "POST /compatibility/subjects/cars-y/versions", TO_BOATS, 403),
    ("cars", "POST /subjects/cars-y/versions", TO_SHARED, ...),
    ("cars", "GET /subjects/boats-value/versions/1", None, 403),
    ("cars", "POST /subjects/boats-value", {"schema": INT}, 403),
    ("cars", "PUT /config/cars-value", {"compatibility": "NONE"}, 403),
    (
        "cars",
        "GET /config/cars-value?defaultToGlobal=true",
        None,
        {"compatibilityLevel": "BACKWARD"},
    ),
    ("cars", "GET /config", None, {"compatibilityLevel": "BACKWARD"}),
    ("cars", "GET /schemas/ids/2", None, 403),
    ("cars", "GET /schemas/ids/2/schema", None, 403),
    ("cars", "GET /schemas/ids/1?subject=boats-too", None, ...),
    ("cars", "GET /contexts", None, ["."]),
    ("line", "PUT /config/:.line:cars", {"compatibility": "NONE"}, {"compatibility": "NONE"}),
    ("line", "PUT /contexts/.line/mode", {"mode": "READWRITE"}, {"mode": "READWRITE"}),
    ("line", "PUT /config/:.:", {"compatibility": "NONE"}, 403),
    ("line", "PUT /config", {"compatibility": "NONE"}, 403),
    ("line", "GET /contexts", None, [".", ".line"]),
    ("line", "DELETE /contexts/.other", None, 403),
    ("line", "GET /subjects", None, [":.line:cars"]),
    ("root", "PUT /config", {"compatibility": "BACKWARD"}, {"compatibility": "BACKWARD"}),
]


def test_roles_apply_to_prefixes(service: Service) -> None:
    """Reading, writing and configuring, by the role for the subject's name."""
    for user, request, body, expected in REQUESTS:
        found = _request(service, user, request, body)
        if expected is ...:
            assert isinstance(found, dict), (user, request, found)
        else:
            assert (user, request, found) == (user, request, expected)


def test_a_refusal_has_confluents_code_and_message(service: Service) -> None:
    """403 with its code, and the denied operation."""
    auth = ("cars", PASSWORD)
    answer = service.http.delete("/subjects/boats-value", auth=auth)
    assert answer.json() == {
        "error_code": 40301,
        "message": "User is denied operation Write on Subject: boats-value",
    }
    answer = service.http.put("/mode", json={"mode": "READONLY"}, auth=auth)
    assert answer.json() == {
        "error_code": 40301,
        "message": "User is denied operation on this server.",
    }


def test_lists_contain_only_readable_entries() -> None:
    """Filtered before paging: a page is full as long as there are more."""
    with Service(Access(USERS)) as service:
        for subject in ("a", "b", "cars-1", "cars-2", "d", "cars-3"):
            _request(service, "root", f"POST /subjects/{subject}/versions", {"schema": INT})
        for request, expected in (
            ("GET /subjects", ["cars-1", "cars-2", "cars-3"]),
            ("GET /subjects?limit=2", ["cars-1", "cars-2"]),
            ("GET /subjects?offset=2&limit=2", ["cars-3"]),
            ("GET /schemas/ids/1/subjects?limit=1", ["cars-1"]),
            ("GET /schemas/ids/1/versions?offset=2", [{"subject": "cars-3", "version": 1}]),
        ):
            assert _request(service, "cars", request) == expected
        assert [one["subject"] for one in _request(service, "cars", "GET /schemas?limit=2")] == [
            "cars-1",
            "cars-2",
        ]
        assert _request(service, "cars", "GET /schemas/ids/1")["subject"] == "cars-1"
        guid = _request(service, "cars", "GET /subjects/cars-1/versions/1")["guid"]
        assert _request(service, "cars", f"GET /schemas/guids/{guid}")["schema"] == INT
        assert _request(service, "cars", f"GET /schemas/guids/{guid}/ids") == [
            {"context": ".", "id": 1}
        ]


def test_an_alias_grants_no_access(service: Service) -> None:
    """The role for the subject that the alias refers to applies."""
    _request(service, "root", "PUT /config/cars-alias", {"alias": "boats-value"})
    assert _request(service, "cars", "GET /subjects/cars-alias/versions") == 403
    _request(service, "root", "PUT /config/boats-alias", {"alias": "cars-value"})
    assert _request(service, "cars", "GET /subjects/boats-alias/versions") == [1]


def test_other_contexts_are_searched_only_where_readable(service: Service) -> None:
    """A name without a context is looked up in all readable contexts, and no other."""
    assert _request(service, "root", "GET /subjects/cars/versions/1")["subject"] == ":.line:cars"
    c = User("c", PASSWORD, {"c": Role.WRITE, ":.seen:": Role.READ})
    with Service(Access((*USERS, c))) as other:
        _request(other, "root", "POST /subjects/:.line:cars/versions", {"schema": INT})
        _request(other, "root", "POST /subjects/c/versions", {"schema": INT})
        for request, body in (
            ("GET /subjects/cars/versions/1", None),
            ("GET /subjects/cars/versions/1/schema", None),
            ("POST /subjects/cars", {"schema": INT}),
            ("POST /subjects/cars/versions/1/tags", {}),
        ):
            method, _, path = request.partition(" ")
            answer = other.http.request(method, path, json=body, auth=("c", PASSWORD))
            assert (request, answer.status_code) == (request, 404)
            assert answer.json()["message"] == "Subject 'cars' not found."
        assert _request(other, "c", "GET /schemas/ids/1?subject=cars")["subject"] == "c"
        _request(other, "root", "POST /subjects/:.seen:cars/versions", {"schema": INT})
        assert _request(other, "c", "GET /subjects/cars/versions/1")["subject"] == ":.seen:cars"


def test_a_guid_is_readable_through_any_context(service: Service) -> None:
    """Its content is in several contexts: one that may be read is enough."""
    for subject in ("boats-three", ":.line:three"):
        made = _request(service, "root", f"POST /subjects/{subject}/versions", {"schema": STRING})
    path = f"GET /schemas/guids/{made['guid']}"
    assert _request(service, "line", path)["schema"] == STRING
    assert _request(service, "line", f"{path}/ids") == [{"context": ".line", "id": made["id"]}]
    assert _request(service, "cars", path) == 403


def _part(name: str, kind: str, **more: Any) -> str:
    return record(field_of("f", kind, **more), name=name)


SECRET = _part("Secret", "int", **{"confluent:tags": ["PII"]})


def _to(name: str, subject: str) -> dict[str, Any]:
    return {"references": [{"name": name, "subject": subject, "version": 1}]}


def test_unreadable_schemas_are_not_disclosed_indirectly() -> None:
    """Neither inlined, nor by tags, nor by incompatibilities, nor by a new reference to them."""
    with Service(Access(USERS)) as service:
        top = {"schema": _part("C", "Mid"), **_to("Mid", "shared-mid")}
        _request(service, "root", "POST /subjects/secret/versions", {"schema": SECRET})
        mid = {"schema": _part("Mid", "Secret"), **_to("Secret", "secret")}
        _request(service, "root", "POST /subjects/shared-mid/versions", mid)
        made = _request(service, "root", "POST /subjects/cars-a/versions", top)
        other = {"schema": record(field_of("f", json.loads(_part("Mid", "string"))), name="C")}
        for request, body in (
            ("GET /subjects/cars-a/versions/1?format=resolved", None),
            ("GET /subjects/cars-a/versions/1/schema?format=resolved", None),
            ("GET /subjects/cars-a/versions/1?findTags=*", None),
            (f"GET /schemas/ids/{made['id']}?format=resolved", None),
            (f"GET /schemas/ids/{made['id']}?findTags=PII", None),
            (f"GET /schemas/guids/{made['guid']}?format=resolved", None),
            ("POST /subjects/cars-a?format=resolved", top),
            ("POST /compatibility/subjects/cars-a/versions?verbose=true", other),
            ("POST /compatibility/subjects/cars-a/versions/1?verbose=true", other),
            ("POST /subjects/cars-a/versions", other),
            ("POST /subjects/cars-a/versions/1/tags", {}),
            ("POST /subjects/cars-b/versions", {"schema": INT, **_to("C", "cars-a")}),
            ("POST /subjects/cars-b/versions", top),
        ):
            method, _, path = request.partition(" ")
            answer = service.http.request(method, path, json=body, auth=("cars", PASSWORD))
            assert (request, answer.status_code) == (request, 403)
            assert "secret" not in answer.text.lower()
        assert (
            _request(service, "cars", "GET /subjects/cars-a/versions/1")["schema"] == top["schema"]
        )
        resolved = _request(service, "reader", "GET /subjects/cars-a/versions/1?format=resolved")
        assert "Secret" in resolved["schema"]


def test_an_alias_that_may_not_be_read_is_not_listed() -> None:
    """But the subject that it refers to is, which may be read."""
    with Service(Access(USERS)) as service:
        _request(service, "root", "POST /subjects/cars-1/versions", {"schema": INT})
        for alias in ("cars-alias", "hidden-alias"):
            _request(service, "root", f"PUT /config/{alias}", {"alias": "cars-1"})
        for user, expected in (("cars", ["cars-alias"]), ("root", ["cars-alias", "hidden-alias"])):
            (one,) = _request(service, user, "GET /schemas?aliases=true")
            assert one["aliases"] == expected


def test_passwords_are_never_printed(caplog: pytest.LogCaptureFixture) -> None:
    """Neither in a log, also after an error, nor in the representation of a user."""
    caplog.set_level(logging.DEBUG)
    with Service(Access(USERS)) as service:
        assert _request(service, "root", "GET /subjects") == []
        assert _request(service, "cars", "GET /subjects/x/versions") == 403
        service.http.get("/", headers={"authorization": _login("root", PASSWORD + "x")})
        service.store.suspend()
        assert _request(service, "root", "GET /subjects") == 500
    encoded = _login("root", PASSWORD).removeprefix("Basic ")
    for secret in (PASSWORD, encoded[:-4]):
        assert secret not in caplog.text
        assert secret not in repr(USERS)
