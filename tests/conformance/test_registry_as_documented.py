"""Conformance of the registry to its OpenAPI document.

Valid and invalid requests are generated from the document, not from one client's use. Randomly
generated names do not exist in the registry, so many are replaced by existing names and schemas.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import httpx
import pytest
import requests
import schemathesis
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from schemathesis import Case, GenerationMode, HookContext, Response, checks
from schemathesis.generation.feedback import NO_FEEDBACK
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.schemas import OpenApiSchema

from schemas.server import RegistryServer
from tests.conformance.registry.scenario import STRING, field_of, record
from tests.memory_store import MemoryStore, MemoryTree
from tests.profiles import examples

Operation: TypeAlias = APIOperation[Any, Any, Any, Any]
DOCUMENT: Final = yaml.safe_load(
    (Path(__file__).parents[2] / "docs" / "reference" / "registry-openapi.yaml").read_text("utf-8")
)
CHECKS: Final = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
UNREAD: Final = {400, 405, 406, 413, 415}
"""Statuses whose responses are not in the form of the document."""
TIMEOUT_S: Final = 30.0
CALM: Final = settings(
    database=None,
    max_examples=examples(12),
    suppress_health_check=list(HealthCheck),
)

TAGGED: Final = field_of("speed", **{"confluent:tags": ["PII"]})
CAR: Final = record(TAGGED, name="Car")
FASTER: Final = record(TAGGED, field_of("lane", default=0), name="Car")
GARAGE: Final = record(field_of("car", "Car"), name="Garage")
USED: Final = [{"name": "Car", "subject": "cars", "version": 1}]
RULES: Final = {"domainRules": [{"name": "r", "type": "CEL"}]}
REGISTERED: Final[Mapping[str, dict[str, Any]]] = {
    ":.line-3:cars": {"schema": FASTER, "metadata": {"properties": {"k": "v"}}, "ruleSet": RULES},
    "cars": {"schema": CAR},
    "garages": {"schema": GARAGE, "references": USED},
    "gone": {"schema": STRING},
}
THERE: Final[Mapping[str, tuple[Any, ...]]] = {
    "subject": (*REGISTERED, *REGISTERED, "new"),
    "version": ("1", "latest", "-1"),
    "id": (1, 2),
    "guid": ("095d71cf-1255-6b9d-5e33-0ad575b3df5d", "095d71cf12556b9d5e330ad575b3df5d"),
    "context": (".empty", ".line-3"),
    "key": (["k"],),
    "value": (["v"],),
    "findTags": (["*"], ["PII"]),
}
"""For each parameter its existing values; the first values of all belong together."""
CAR_ITSELF: Final = {"entityPath": "Car", "entityType": "sr_record"}
BODIES: Final[Mapping[str, tuple[dict[str, Any], ...]]] = {
    "Schema": (*REGISTERED.values(), {"schema": "[]"}),
    "Tags": ({"tagsToAdd": [{"schemaEntity": CAR_ITSELF, "tags": ["NEW"]}]},),
    "Config": ({"compatibility": "FULL"},),
    "Mode": ({"mode": "READWRITE"},),
}
"""For each documented body its accepted values."""


def often_there(given: Mapping[str, Any] | None) -> SearchStrategy[dict[str, Any]]:
    """Parameters, many with existing values."""
    return st.fixed_dictionaries(
        {
            name: st.sampled_from((value, *THERE.get(name, ()), *THERE.get(name, ())))
            for name, value in (given or {}).items()
        }
    )


def bodies(operation: Operation) -> tuple[dict[str, Any], ...]:
    """Accepted bodies of an operation; empty if it has none."""
    place = operation.definition.raw.get("requestBody", {"$ref": ""})["$ref"]
    return BODIES.get(place.rpartition("/")[2], ())


def loaded() -> OpenApiSchema:
    """The document as a generator of requests."""
    api = schemathesis.openapi.from_dict(DOCUMENT)

    @api.hook
    def flatmap_path_parameters(
        _: HookContext, path_parameters: dict[str, Any]
    ) -> SearchStrategy[Any]:
        return often_there(path_parameters)

    @api.hook
    def flatmap_query(_: HookContext, query: dict[str, Any]) -> SearchStrategy[Any]:
        return often_there(query)

    @api.hook
    def flatmap_body(context: HookContext, body: Any) -> SearchStrategy[Any]:
        assert context.operation is not None
        known = bodies(context.operation)
        return st.sampled_from((body, *known, *known))

    return api


def closed(part: Any) -> Any:
    """The document, or a part of it, without unlisted properties in any object."""
    if isinstance(part, list):
        return [closed(one) for one in part]
    if not isinstance(part, dict):
        return part
    made = {key: closed(one) for key, one in part.items()}
    listed = part.get("type") == "object" and "properties" in part
    return {**made, "additionalProperties": False} if listed else made


def operations(api: OpenApiSchema) -> Mapping[str, Operation]:
    """The operations of a document by their methods and paths."""
    return {
        f"{method.upper()} {path}": api[path][method]
        for path, methods in DOCUMENT["paths"].items()
        for method in methods
        if method != "servers"
    }


API: Final = loaded()
OPERATIONS: Final = operations(API)
ANSWERS: Final = operations(schemathesis.openapi.from_dict(closed(DOCUMENT)))
"""The same operations, with responses without unlisted properties."""
LINKED: Final = [
    label
    for label, one in OPERATIONS.items()
    if one.definition.raw["responses"].get("200") == {"$ref": "#/components/responses/Registered"}
]
"""Operations whose responses have links."""
REFUTABLE: Final = [label for label, one in OPERATIONS.items() if one.query or one.body]
"""Operations that can have an invalid request."""


class Client:
    """Sends generated requests to a registry."""

    def __init__(self, url: str, session: requests.Session) -> None:
        self._url = url
        self._session = session
        self._session.trust_env = False

    def check(self, case: Case[Any], before: str = "") -> Response:
        """Send a request and compare the response with the document.

        Args:
            case: the request.
            before: prefix of its path.
        """
        url = f"{self._url}{before}"
        answer = case.call(base_url=url, session=self._session, timeout=TIMEOUT_S)
        case.validate_response(answer, checks=CHECKS)
        ANSWERS[case.operation.label].validate_response(answer)
        return answer


@contextmanager
def served() -> Iterator[Client]:
    """A client of a registry with a few schemas."""
    server = RegistryServer(MemoryStore(MemoryTree()), "127.0.0.1", 0)
    server.start()
    try:
        with httpx.Client(base_url=server.url, trust_env=False, timeout=TIMEOUT_S) as http:
            for subject, body in REGISTERED.items():
                http.post(f"/subjects/{subject}/versions", json=body).raise_for_status()
            http.delete("/subjects/gone").raise_for_status()
            http.put("/config/vehicles", json={"alias": "cars"}).raise_for_status()
            http.put("/config/:.line-3:cars", json={"normalize": False}).raise_for_status()
            http.put("/mode/:.line-3:cars", json={"mode": "READWRITE"}).raise_for_status()
        with requests.Session() as session:
            yield Client(server.url, session)
    finally:
        server.stop()


@pytest.fixture(scope="module")
def reader() -> Iterator[Client]:
    """A client of a registry that no test changes."""
    with served() as client:
        yield client


@pytest.fixture
def client(label: str, request: pytest.FixtureRequest) -> Iterator[Client]:
    """A client for an operation; for a write with a registry of its own."""
    if label.startswith("GET "):
        yield request.getfixturevalue("reader")
        return
    with served() as own:
        yield own


def case_of(operation: Operation, **parameters: Any) -> Case[Any]:
    """A valid request, with the required values of its parameters."""
    names = [one.name for one in operation.path_parameters]
    there = {name: parameters.get(name, THERE.get(name, ("x",))[0]) for name in names}
    query = {name: value for name, value in parameters.items() if name not in names}
    for body in bodies(operation)[:1]:
        media = "application/json"
        return operation.Case(path_parameters=there, query=query, body=body, media_type=media)
    return operation.Case(path_parameters=there, query=query)


@pytest.mark.parametrize("label", OPERATIONS)
def test_valid_requests_have_the_documented_responses(label: str, client: Client) -> None:
    """All that can be executed succeed, except those of associations, of which there are none.

    Also in a context, the other server of the document, which lacks only the root.
    """
    places = ("",) if label.endswith(" /") else ("", "/contexts/.line-3")
    status = client.check(case_of(OPERATIONS[label])).status_code
    assert status in ({404} if "/associations/" in label else {200, 204})

    @CALM
    @given(OPERATIONS[label].as_strategy(feedback=NO_FEEDBACK))
    def send(case: Case[Any]) -> None:
        for before in places:
            assert client.check(case, before).status_code not in UNREAD

    send()


@pytest.mark.parametrize("label", REFUTABLE)
def test_invalid_requests_have_the_documented_responses(label: str, client: Client) -> None:
    """Or are ignored; none causes a server error."""

    @CALM
    @given(OPERATIONS[label].as_strategy(GenerationMode.NEGATIVE, feedback=NO_FEEDBACK))
    def send(case: Case[Any]) -> None:
        client.check(case)

    send()


@pytest.mark.parametrize("label", LINKED)
def test_links_lead_to_existing_resources(label: str, client: Client) -> None:
    """A response contains the parameters of the next request."""
    named = {one.definition.raw["operationId"]: one for one in OPERATIONS.values()}
    links = DOCUMENT["components"]["links"]
    assert DOCUMENT["components"]["responses"]["Registered"]["links"].keys() == links.keys()
    for link in links.values():
        first = case_of(OPERATIONS[label])
        body = client.check(first).json()
        where = {
            name: _meant(expression, first, body) for name, expression in link["parameters"].items()
        }
        assert client.check(case_of(named[link["operationId"]], **where)).status_code == 200


def _meant(expression: str, request: Case[Any], body: Mapping[str, Any]) -> Any:
    """The value of a link's expression."""
    place, _, name = expression.replace("#/", ".").rpartition(".")
    return {"$request.path": request.path_parameters, "$response.body": body}[place][name]
