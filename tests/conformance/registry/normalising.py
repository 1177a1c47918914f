"""Normalization: one text for all equivalent schemas."""

from tests.conformance.registry.scenario import (
    INT,
    Raw,
    field_of,
    ok,
    record,
    register,
    scenario,
)

SENT = (
    '{"type":"record","name":"n.R","doc":"","z":1,"aliases":["B","A"],'
    '"b":{"y":1,"x":2},"fields":[{"name":"d","order":"ascending","type":{"type":"bytes",'
    '"scale":0,"precision":4,"logicalType":"decimal"}}]}'
)
NORMAL = (
    '{"type":"record","name":"R","namespace":"n","fields":[{"name":"d","type":{"type":"bytes",'
    '"logicalType":"decimal","precision":4}}],"b":{"x":2,"y":1},"z":1,"aliases":["A","B"]}'
)
KEPT = record(
    field_of("a", doc="of a", default=1, order="descending", aliases=["b"]),
    doc="of R",
)
PART = record(field_of("a"), name="Part")
OTHER = record(field_of("a"), name="Other")
REFERENCES = [
    {"name": "z", "subject": "part", "version": 1},
    {"name": "a", "subject": "other", "version": 1},
    {"name": "z", "subject": "part", "version": 1},
]

SCENARIOS = [
    scenario(
        "only on request",
        ok("POST /subjects/s/versions?normalize=true", {"schema": NORMAL}, body={"schema": SENT}),
        register("u", SENT, (2, 1)),
        ok(
            "POST /subjects/t/versions?normalize=True",
            {"version": 1, "schema": NORMAL},
            body={"schema": SENT},
        ),
        ok("GET /subjects/t/versions/1/schema", Raw(NORMAL)),
        ok("POST /subjects/t?normalize=true", {"version": 1}, body={"schema": SENT}),
        ok(
            "POST /compatibility/subjects/t/versions?normalize=true",
            {"is_compatible": True},
            body={"schema": SENT},
        ),
    ),
    scenario(
        "by configuration",
        ok("PUT /config/s", body={"normalize": True}),
        register("s", SENT, {"schema": NORMAL}),
        ok("POST /subjects/s", {"version": 1}, body={"schema": SENT}),
        ok("PUT /config", body={"normalize": True}),
        register("t", SENT, {"id": 1, "schema": NORMAL}),
    ),
    scenario(
        "semantics are preserved",
        ok("POST /subjects/s/versions?normalize=true", {"schema": KEPT}, body={"schema": KEPT}),
        register("s", KEPT, (1, 1)),
    ),
    scenario(
        "references are sorted and unique",
        register("part", PART, (1, 1)),
        register("other", OTHER, (2, 1)),
        ok(
            "POST /subjects/s/versions?normalize=true",
            {"references": [REFERENCES[1], REFERENCES[0]]},
            body={"schema": INT, "references": REFERENCES},
        ),
        register("t", INT, {"references": REFERENCES}, references=REFERENCES),
    ),
]
