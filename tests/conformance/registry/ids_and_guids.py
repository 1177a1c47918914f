"""Schemas by id and by GUID."""

from typing import Any

from tests.conformance.registry.scenario import (
    ABSENT,
    INT,
    STRING,
    Raw,
    field_of,
    ok,
    record,
    refused,
    register,
    scenario,
)

A = record(field_of("a"))
INNER = record(field_of("a"), name="I")
OTHER_INNER = record(field_of("x", "string"), field_of("y", "string"), name="I")
OUTER = record(field_of("i", "I"), name="O")
OUTER_GUID = "e9f16ac7-b142-b1bf-90f8-e4fd8f340b73"
BOTH = "format=resolved&referenceFormat=qualified"
USER = record(
    field_of("id", "int"),
    field_of("name", "string"),
    field_of("email", ["null", "string"], default=None),
    name="User",
    namespace="com.github.louislef299.events.avro",
)
USER_GUID = "4bd2bf79-95af-aace-ebad-18dfd323a304"
STRING_GUID = "095d71cf-1255-6b9d-5e33-0ad575b3df5d"
NOBODYS_GUID = "00000000-0000-0000-0000-000000000000"


def to(subject: str) -> dict[str, Any]:
    """A reference to the type that OUTER uses."""
    return {"name": "I", "subject": subject, "version": 1}


def outer(inner: str) -> str:
    """OUTER with its reference resolved."""
    return OUTER.replace('"type":"I"', f'"type":{inner}')


TO_INNER = [to("inner")]
WHOLE = {
    "subject": "s",
    "version": 1,
    "id": ABSENT,
    "guid": STRING_GUID,
    "schemaType": "AVRO",
    "schema": STRING,
    "maxId": ABSENT,
    "deleted": False,
}

SCENARIOS = [
    scenario(
        "by an id",
        register("s", STRING, (1, 1)),
        register("t", INT, (2, 1)),
        ok("GET /schemas/ids/1", WHOLE),
        ok("GET /schemas/ids/1?subject=s", WHOLE),
        ok("GET /schemas/ids/1?subject=nobody", WHOLE),
        ok("GET /schemas/ids/1?fetchMaxId=true", {**WHOLE, "maxId": 2}),
        ok("GET /schemas/ids/1?fetchMaxId=no&subject=", WHOLE),
        ok("GET /schemas/ids/1/schema", Raw(STRING)),
        ok("GET /schemas/ids/1/subjects", ["s"]),
        ok("GET /schemas/ids/1/versions", [{"subject": "s", "version": 1}]),
        ok("HEAD /schemas/ids/1", Raw("")),
    ),
    scenario(
        "by an unknown id",
        register("s", STRING, (1, 1)),
        refused("GET /schemas/ids/9", 40403, "Schema 9 not found"),
        refused("GET /schemas/ids/0", 40403, "Schema 0 not found"),
        refused("GET /schemas/ids/-1", 40403, "Schema -1 not found"),
        refused("GET /schemas/ids/9/schema", 40403, "Schema 9 not found"),
        refused("GET /schemas/ids/9/subjects", 40403, "Schema not found"),
        refused("GET /schemas/ids/9/versions", 40403, "Schema not found"),
        refused("GET /schemas/ids/x", 404, "HTTP 404 Not Found"),
        refused("GET /schemas/ids/1.0", 404, "HTTP 404 Not Found"),
        refused("GET /schemas/ids/99999999999999999999", 404, "HTTP 404 Not Found"),
        refused("GET /schemas/ids/%D9%A1", 404, "HTTP 404 Not Found"),
    ),
    scenario(
        "one id under several subjects",
        register("b", A, (1, 1)),
        register("a", A, (1, 1)),
        register("c", A, (1, 1)),
        ok("GET /schemas/ids/1?subject=c", {"subject": "c", "version": 1}),
        ok("GET /schemas/ids/1/subjects", ["a", "b", "c"]),
        ok("GET /schemas/ids/1/subjects?offset=1&limit=1", ["b"]),
        ok("GET /schemas/ids/1/subjects?subject=c", ["a", "b", "c"]),
        ok(
            "GET /schemas/ids/1/versions?limit=2",
            [{"subject": "a", "version": 1}, {"subject": "b", "version": 1}],
        ),
        ok("DELETE /subjects/b", [1]),
        ok("GET /schemas/ids/1/subjects", ["a", "c"]),
        ok("GET /schemas/ids/1/subjects?deleted=true", ["a", "b", "c"]),
    ),
    scenario(
        "a soft-deleted schema is read by its id until its permanent deletion",
        register("s", STRING, (1, 1)),
        ok("DELETE /subjects/s", [1]),
        ok("GET /schemas/ids/1", {**WHOLE, "deleted": True}),
        ok("GET /schemas/ids/1/subjects", []),
        ok("GET /schemas/ids/1/versions", []),
        ok("GET /schemas/ids/1/versions?deleted=true", [{"subject": "s", "version": 1}]),
        ok(f"GET /schemas/guids/{STRING_GUID}", {"schema": STRING}),
        ok("DELETE /subjects/s?permanent=true", [1]),
        refused("GET /schemas/ids/1", 40403, "Schema 1 not found"),
        refused(f"GET /schemas/guids/{STRING_GUID}", 40403, f"Schema {STRING_GUID} not found"),
        refused(f"GET /schemas/guids/{STRING_GUID}/ids", 40403),
    ),
    scenario(
        "by a GUID, the same as in every other registry",
        register("s", STRING, {"guid": STRING_GUID}),
        register("u", USER, {"guid": USER_GUID}),
        ok(
            f"GET /schemas/guids/{USER_GUID}",
            {
                "guid": USER_GUID,
                "schemaType": "AVRO",
                "schema": USER,
                "subject": ABSENT,
                "version": ABSENT,
                "id": ABSENT,
                "deleted": False,
            },
        ),
        ok(f"GET /schemas/guids/{USER_GUID.replace('-', '')}", {"guid": USER_GUID}),
        ok(f"GET /schemas/guids/{USER_GUID.upper()}", {"guid": USER_GUID}),
        ok(f"GET /schemas/guids/{USER_GUID}/ids", [{"context": ".", "id": 2}]),
        refused(f"GET /schemas/guids/{NOBODYS_GUID}", 40403, f"Schema {NOBODYS_GUID} not found"),
        refused("GET /schemas/guids/x", 40403, "Schema x not found"),
        refused("GET /schemas/guids/x/ids", 40403, "Schema x not found"),
    ),
    scenario(
        "a GUID is resolved in the context of the request, else in the default one",
        register("inner", INNER, (1, 1)),
        register(":.c:inner", OTHER_INNER, (1, 1)),
        register(":.c:outer", OUTER, {"guid": OUTER_GUID}, references=TO_INNER),
        *(
            ok(f"GET {prefix}/schemas/guids/{OUTER_GUID}?{query}", answer)
            for prefix in ("", "/contexts/.c", "/contexts/.d")
            for query, answer in (
                ("format=resolved", {"schema": outer(OTHER_INNER), "guid": OUTER_GUID}),
                ("referenceFormat=qualified", {"references": [to(":.c:inner")]}),
                ("", {"references": [to("inner")], "schema": OUTER}),
            )
        ),
        register("outer", OUTER, {"guid": OUTER_GUID}, references=TO_INNER),
        *(
            ok(f"GET {request}", {"schema": outer(found), "references": [to(referred)]})
            for request, found, referred in (
                (f"/schemas/guids/{OUTER_GUID}?{BOTH}", INNER, "inner"),
                (f"/contexts/.d/schemas/guids/{OUTER_GUID}?{BOTH}", INNER, "inner"),
                (f"/contexts/.c/schemas/guids/{OUTER_GUID}?{BOTH}", OTHER_INNER, ":.c:inner"),
                (f"/schemas/guids/{OUTER_GUID}?{BOTH}&subject=:.c:", OTHER_INNER, ":.c:inner"),
            )
        ),
        register(":.c:far", OUTER, references=[to(":.:inner")]),
        ok(
            "GET /subjects/:.c:far/versions/1?referenceFormat=qualified",
            {"references": [to(":.:inner")]},
        ),
    ),
    scenario(
        "one GUID in several contexts",
        register("s", INT, (1, 1)),
        register("t", STRING, (2, 1)),
        register(":.b:s", STRING, (1, 1)),
        register(":.a:s", STRING, (1, 1)),
        ok(
            f"GET /schemas/guids/{STRING_GUID}/ids",
            [
                {"context": ".", "id": 2},
                {"context": ".a", "id": 1},
                {"context": ".b", "id": 1},
            ],
        ),
    ),
]
