"""Metadata of the server, and features that it does not have."""

from tests.conformance.registry.scenario import (
    ABSENT,
    STRING,
    Step,
    ok,
    refused,
    register,
    scenario,
)

V1 = "application/vnd.schemaregistry.v1+json"
V0 = "application/vnd.schemaregistry+json"
JSON = "application/json"
MARK = "3f1c5e5a-94a5-4c0e-8f0b-0a6c6a3f6f11"


def taken(accept: str, answered: str) -> Step:
    """A request with an Accept header, and the media type of its response."""
    headers = {"accept": accept}
    return Step("GET /subjects", None, 200, [], headers, {"content-type": answered})


SCENARIOS = [
    scenario(
        "the root, its types and its version",
        ok("GET /", {}),
        ok("POST /", {}, body={}),
        ok("POST /", {}),
        ok("GET /schemas/types", ["AVRO"]),
        ok("GET /v1/metadata/version", {"version": "8.2.0"}),
        ok(
            "GET /v1/metadata/id",
            {
                "scope": {"path": [], "clusters": {"schema-registry-cluster": "schema-registry"}},
                "id": ABSENT,
            },
        ),
    ),
    scenario(
        "every response has a request id, the client's if it sent one",
        Step("GET /", headers={"x-request-id": MARK}, response_headers={"x-request-id": MARK}),
        Step(
            "GET /x",
            None,
            404,
            headers={"x-request-id": MARK},
            response_headers={"x-request-id": MARK},
        ),
    ),
    scenario(
        "associations are empty",
        *(
            refused(f"GET /associations/{path}", 40410, "Association for 'x' not found.")
            for path in ("subjects/x", "resources/x", "resources/-/x?resourceType=topic")
        ),
    ),
    scenario(
        "the media type is the accepted one",
        taken("*/*", V1),
        taken("", V1),
        taken("application/*", V1),
        taken("*", V1),
        taken("*/x", V1),
        taken(f"*;q=0.1, {JSON}", JSON),
        taken(JSON, JSON),
        taken(f"{JSON}, {V1}", V1),
        taken(f"{V1};q=0.1, {JSON}", JSON),
        taken("text/html, application/xhtml+xml, */*;q=0.8", V1),
        taken(V0, V0),
        Step("GET /subjects", None, 406, {"error_code": 406}, {"accept": "text/html"}),
        Step("GET /subjects", None, 406, {"error_code": 406}, {"accept": f"{JSON};q=0"}),
        Step("GET /nothing", None, 404, {"error_code": 404}, {"accept": "text/html"}),
    ),
    scenario(
        "HEAD without a body",
        register("s", STRING, (1, 1)),
        Step("HEAD /subjects", response_headers={"content-length": "5", "content-type": V1}),
        Step("HEAD /subjects/s/versions/latest"),
        Step("HEAD /subjects/t/versions/latest", status=404),
    ),
    scenario(
        "errors in the same media type",
        Step("GET /nothing", None, 404, {"error_code": 404}, response_headers={"content-type": V1}),
        Step(
            "GET /schemas/ids/1",
            None,
            404,
            response_headers={"content-type": JSON},
            headers={"accept": JSON},
        ),
    ),
]
