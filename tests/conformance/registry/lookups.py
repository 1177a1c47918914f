"""Lookup of the registered version of a schema."""

from typing import Any

from tests.conformance.registry.scenario import (
    ABSENT,
    INT,
    STRING,
    StartsWith,
    Step,
    field_of,
    ok,
    record,
    refused,
    register,
    scenario,
)

A = record(field_of("a"))
AB = record(field_of("a"), field_of("b", default=0))
SPACED = '{"fields":[{"type":{"type":"int"},"name":"a"}],"name":"R","type":"record"}'
PROPERTY = {"properties": {"k": "v"}}


def look_up(subject: str, schema: str, answer: Any, query: str = "", **more: Any) -> Step:
    """Look a schema up; an int as the answer is an error code."""
    request, body = f"POST /subjects/{subject}{query}", {"schema": schema, **more}
    return (
        refused(request, answer, body=body)
        if isinstance(answer, int)
        else ok(request, answer, body=body)
    )


SCENARIOS = [
    scenario(
        "the version with all its properties",
        register("s", A, (1, 1)),
        register("s", AB, (2, 2)),
        look_up(
            "s",
            A,
            {
                "subject": "s",
                "version": 1,
                "id": 1,
                "schemaType": "AVRO",
                "schema": A,
                "references": ABSENT,
            },
        ),
        look_up("s", SPACED, {"version": 1, "schema": A}, "?normalize=False&deleted=False"),
        look_up("s", AB, {"version": 2, "id": 2}, schemaType="AVRO", references=[]),
        look_up("s", AB, {"version": 2}, version=1, id=9),
    ),
    scenario(
        "errors: missing schema, missing subject, invalid text, in this order",
        register("s", A, (1, 1)),
        refused("POST /subjects/s", 40403, "Schema not found", body={"schema": AB}),
        refused("POST /subjects/t", 40401, "Subject 't' not found.", body={"schema": A}),
        refused(
            "POST /subjects/t",
            42201,
            StartsWith("Invalid schema of type AVRO, details: "),
            body={"schema": "{"},
        ),
        refused("POST /subjects/t", 40401, body={"schema": ""}),
        refused("POST /subjects/s", 40403, body={}),
        refused("POST /subjects/__GLOBAL", 40401, body={"schema": A}),
    ),
    scenario(
        "deleted versions only on request",
        register("s", A, (1, 1)),
        register("s", AB, (2, 2)),
        ok("DELETE /subjects/s/versions/1", 1),
        look_up("s", A, 40403),
        look_up("s", A, {"version": 1}, "?deleted=true"),
        ok("DELETE /subjects/s", [2]),
        look_up("s", AB, 40401),
        look_up("s", AB, {"version": 2}, "?deleted=TRUE"),
        look_up("s", INT, 40403, "?deleted=true"),
    ),
    scenario(
        "metadata are part of a schema, and are added as in registration",
        register("s", A, (1, 1)),
        look_up("s", A, 40403, metadata=PROPERTY),
        register("s", A, (2, 2), metadata=PROPERTY),
        look_up("s", A, {"version": 2, "metadata": PROPERTY}, metadata=PROPERTY),
        look_up("s", A, {"version": 1, "metadata": ABSENT}),
        register("t", STRING, {"version": 1}, metadata=PROPERTY),
        look_up("t", STRING, {"version": 1, "metadata": PROPERTY}),
    ),
    scenario(
        "in another context, where the default one has none",
        register(":.c:s", A, (1, 1)),
        look_up("s", A, {"subject": ":.c:s", "version": 1}),
        look_up(":.d:s", A, 40401),
    ),
]
