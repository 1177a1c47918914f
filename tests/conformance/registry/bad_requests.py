"""Invalid requests: paths, methods, bodies, numbers."""

from tests.conformance.registry.scenario import (
    STRING,
    StartsWith,
    Step,
    ok,
    refused,
    register,
    scenario,
)

REGISTER = "POST /subjects/s/versions"
GOOD = {"schema": STRING}
NO_VERSION = (
    "The specified version '{}' is not a valid version id. "
    'Allowed values are between [1, 2^31-1] and the string "latest"'
)
NOT_FOUND = "HTTP 404 Not Found"


def sent_as(media: str, status: int) -> Step:
    """A request with a media type."""
    body = b'{"schema":"\\"string\\""}'
    return Step(REGISTER, body, status, headers={"content-type": media})


SCENARIOS = [
    scenario(
        "unknown paths",
        *(
            refused(request, 404, NOT_FOUND)
            for request in (
                "GET /nothing",
                "GET /subjects/s/versions/1/nothing",
                "GET /schemas/ids",
                "GET /SUBJECTS",
                "POST /nothing",
                "GET /v1/metadata",
                "GET /contexts/.a/nothing",
            )
        ),
        ok("GET /subjects/", []),
        ok("GET /subjects//", []),
        Step("GET /subjects//versions", None, 405),
    ),
    scenario(
        "methods not allowed",
        *(
            Step(request, None, 405, {"error_code": 405, "message": "HTTP 405 Method Not Allowed"})
            for request in (
                "PUT /subjects/s",
                "GET /subjects/s",
                "DELETE /subjects",
                "POST /config",
                "PATCH /subjects/s/versions/1",
                "OPTIONS /subjects",
                "PUT /subjects/s/versions",
                "POST /schemas/ids/1",
            )
        ),
        Step("PUT /subjects/s", None, 405, response_headers={"allow": "POST, DELETE"}),
    ),
    scenario(
        "missing bodies",
        *(
            Step(request, body, 422, {"error_code": 422})
            for request in (REGISTER, "POST /subjects/s", "PUT /config", "PUT /mode/s")
            for body in (b"", b"null", b" \n", None)
        ),
    ),
    scenario(
        "bodies other than JSON objects",
        *(
            Step(request, body, 400, {"error_code": 400, "message": StartsWith("the body is not")})
            for request in (REGISTER, "PUT /config/s")
            for body in (
                b"{",
                b"x",
                b"[]",
                b'"x"',
                b"1",
                b"{'schema': 1}",
                b'{"a":NaN}',
                b'{"schema":"\xff"}',
                b'{"schema":"\xed\xa0\x80"}',
                b'{"schema":"\\ud800"}',
                b"\xff\xfe{\x00}\x00",
                b'{"version":' + b"9" * 5_000 + b"}",
                b"[" * 100_000,
                b'{"a":' * 100_000,
            )
        ),
        ok("GET /subjects", []),
    ),
    scenario(
        "values of the wrong type",
        *(
            refused(REGISTER, 400, body={**GOOD, key: value})
            for key, value in (
                ("schema", {}),
                ("schema", []),
                ("schemaType", []),
                ("schemaType", {}),
                ("references", "x"),
                ("references", [1]),
                ("version", "x"),
                ("version", 2**31),
                ("version", 10**400),
                ("version", []),
                ("version", 1.5),
                ("version", 1e300),
                ("id", True),
                ("id", 2**40),
                ("metadata", "x"),
                ("ruleSet", "x"),
                ("ruleSet", {"domainRules": [1]}),
            )
        ),
        ok("GET /subjects", []),
        register("s", STRING, (1, 1), version="0", id="-1"),
        register("s", STRING, (1, 1), version=0.0, id=-1.0),
    ),
    scenario(
        "media types of bodies",
        sent_as("application/vnd.schemaregistry.v1+json", 200),
        sent_as("application/vnd.schemaregistry+json", 200),
        sent_as("application/json; charset=utf-8", 200),
        sent_as("Application/JSON", 200),
        sent_as("application/octet-stream", 200),
        sent_as("", 200),
        sent_as("text/plain", 415),
        sent_as("application/x-www-form-urlencoded", 415),
        sent_as("application/xml", 415),
        Step(
            REGISTER,
            b"{}",
            415,
            {"error_code": 415, "message": "HTTP 415 Unsupported Media Type"},
            {"content-type": "text/html"},
        ),
    ),
    scenario(
        "invalid version numbers",
        register("s", STRING, (1, 1)),
        *(
            refused(f"GET /subjects/s/versions/{sent}", 42202, NO_VERSION.format(printed))
            for sent, printed in (
                ("0", "0"),
                ("-2", "-2"),
                ("x", "x"),
                ("1.0", "1.0"),
                ("1e1", "1e1"),
                ("2147483648", "2147483648"),
                ("99999999999999999999", "99999999999999999999"),
                ("%D9%A1", "\u0661"),
                ("newest", "newest"),
            )
        ),
        refused("GET /subjects/t/versions/x", 42202),
        refused("GET /subjects/s/versions/2147483647", 40402, "Version 2147483647 not found."),
        refused("DELETE /subjects/s/versions/x", 42202),
    ),
    scenario(
        "unknown query parameters are ignored",
        register("s", STRING, (1, 1)),
        ok("GET /subjects/s/versions?a&b=&c=1&=&&deleted", [1]),
        ok("GET /subjects/s/versions?deleted=1&deletedOnly=yes", [1]),
        ok("GET /subjects?deleted_only=true&subject=x", ["s"]),
    ),
    scenario(
        "negative offsets are zero",
        register("s", STRING, (1, 1)),
        ok("GET /subjects?offset=-1", ["s"]),
        ok("GET /subjects/s/versions?offset=-2147483647&limit=-7", [1]),
    ),
]
