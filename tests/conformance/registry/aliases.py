"""Aliases: other names of subjects."""

from tests.conformance.registry.scenario import (
    ABSENT,
    INT,
    STRING,
    ok,
    refused,
    register,
    scenario,
)

SCENARIOS = [
    scenario(
        "reads and writes by an alias",
        register("cars", INT, (1, 1)),
        ok("PUT /config/old", {"alias": "cars"}, body={"alias": "cars"}),
        ok("GET /subjects/old/versions/1", {"subject": "cars"}),
        ok("GET /subjects/old/versions", [1]),
        ok("GET /schemas/ids/1?subject=old", {"subject": "cars"}),
        ok("POST /subjects/old", {"subject": "cars"}, body={"schema": INT}),
        register("old", INT, (1, 1)),
        register("old", '"long"', (2, 2)),
        ok("GET /subjects", ["cars"]),
        ok(
            "POST /compatibility/subjects/old/versions/latest",
            {"is_compatible": False},
            body={"schema": STRING},
        ),
        ok("DELETE /subjects/old/versions/2", 2),
        ok("DELETE /subjects/old", [1]),
        refused("GET /subjects/old/versions", 40401, "Subject 'cars' not found."),
    ),
    scenario(
        "aliases are resolved once, and not for configurations",
        register("cars", INT, (1, 1)),
        ok("PUT /config/old", body={"alias": "cars"}),
        ok("PUT /config/older", body={"alias": "old"}),
        refused("GET /subjects/older/versions", 40401, "Subject 'old' not found."),
        ok("PUT /config/old", {"alias": "cars"}, body={"compatibility": "NONE"}),
        refused("GET /config/cars", 40408),
        refused(
            "GET /mode/old", 40409, "Subject 'old' does not have subject-level mode configured"
        ),
        ok("PUT /config/old", {"alias": ABSENT}, body={"alias": None}),
        refused("GET /subjects/old/versions", 40401, "Subject 'old' not found."),
    ),
    scenario(
        "within a context, and into another",
        register(":.a:cars", INT, (1, 1)),
        ok("PUT /config/:.a:old", body={"alias": "cars"}),
        ok("GET /subjects/:.a:old/versions/1", {"subject": ":.a:cars"}),
        ok("GET /contexts/.a/subjects/old/versions", [1]),
        ok("PUT /config/far", body={"alias": ":.a:cars"}),
        ok("GET /subjects/far/versions", [1]),
    ),
    scenario(
        "list of schemas with aliases",
        register("cars", INT, (1, 1)),
        register("boats", STRING, (2, 1)),
        ok("PUT /config/b", body={"alias": "cars"}),
        ok("PUT /config/a", body={"alias": "cars"}),
        ok(
            "GET /schemas?aliases=true",
            [{"subject": "boats", "aliases": ABSENT}, {"subject": "cars", "aliases": ["a", "b"]}],
        ),
        ok("GET /schemas", [{"aliases": ABSENT}, {"aliases": ABSENT}]),
    ),
    scenario(
        "an alias of itself",
        ok("PUT /config/s", body={"alias": "s"}),
        register("s", INT, (1, 1)),
        ok("GET /subjects/s/versions", [1]),
    ),
]
