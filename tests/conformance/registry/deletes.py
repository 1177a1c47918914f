"""Soft and permanent deletion."""

from tests.conformance.registry.scenario import (
    STRING,
    field_of,
    ok,
    record,
    refused,
    register,
    scenario,
)

A = record(field_of("a"))
AB = record(field_of("a"), field_of("b", default=0))
USES_A = record(field_of("r", "R"), name="User")
REFERENCE = {"name": "R", "subject": "a", "version": 1}
TWO = (register("s", A, (1, 1)), register("s", AB, (2, 2)))
SOFT = "was soft deleted.Set permanent=true to delete permanently"
FIRST = "was not deleted first before being permanently deleted"
USED = "One or more references exist to the schema {magic=1,keytype=SCHEMA,subject=a,version=1}."

SCENARIOS = [
    scenario(
        "a version, soft and permanent",
        *TWO,
        refused(
            "DELETE /subjects/s/versions/1?permanent=true", 40407, f"Subject 's' Version 1 {FIRST}"
        ),
        ok("DELETE /subjects/s/versions/1", 1),
        refused("DELETE /subjects/s/versions/1", 40406, f"Subject 's' Version 1 {SOFT}"),
        ok("DELETE /subjects/s/versions/1?permanent=true", 1),
        refused("DELETE /subjects/s/versions/1?permanent=true", 40402, "Version 1 not found."),
        ok("GET /subjects/s/versions?deleted=true", [2]),
    ),
    scenario(
        "the latest version",
        *TWO,
        ok("DELETE /subjects/s/versions/latest", 2),
        ok("DELETE /subjects/s/versions/latest", 1),
        refused("DELETE /subjects/s/versions/latest", 40402, "Version -1 not found."),
        refused("DELETE /subjects/t/versions/latest", 40401, "Subject 't' not found."),
    ),
    scenario(
        "a missing version",
        *TWO,
        refused("DELETE /subjects/s/versions/3", 40402, "Version 3 not found."),
        refused("DELETE /subjects/t/versions/3", 40401, "Subject 't' not found."),
        refused("DELETE /subjects/t/versions/0", 42202),
    ),
    scenario(
        "a subject, soft and permanent",
        *TWO,
        refused("DELETE /subjects/s?permanent=true", 40405, f"Subject 's' {FIRST}"),
        ok("DELETE /subjects/s/versions/1", 1),
        refused("DELETE /subjects/s?permanent=true", 40405, f"Subject 's' {FIRST}"),
        ok("DELETE /subjects/s", [2]),
        refused("DELETE /subjects/s", 40404, f"Subject 's' {SOFT}"),
        ok("GET /subjects?deleted=true", ["s"]),
        ok("DELETE /subjects/s?permanent=true", [1, 2]),
        refused("DELETE /subjects/s?permanent=true", 40401, "Subject 's' not found."),
        refused("DELETE /subjects/s", 40401, "Subject 's' not found."),
        ok("GET /subjects?deleted=true", []),
    ),
    scenario(
        "a permanently deleted schema gets another id",
        register("s", STRING, (1, 1)),
        ok("DELETE /subjects/s", [1]),
        ok("DELETE /subjects/s?permanent=true", [1]),
        register("t", A, (2, 1)),
    ),
    scenario(
        "referenced versions cannot be deleted",
        register("a", A, (1, 1)),
        register("u", USES_A, (2, 1), references=[REFERENCE]),
        refused("DELETE /subjects/a", 42206, USED),
        refused("DELETE /subjects/a/versions/1", 42206, USED),
        ok("DELETE /subjects/u", [1]),
        ok("DELETE /subjects/a", [1]),
        refused("DELETE /subjects/a?permanent=true", 42206, USED),
        refused("DELETE /subjects/a/versions/1?permanent=true", 42206, USED),
        ok("DELETE /subjects/u?permanent=true", [1]),
        ok("DELETE /subjects/a?permanent=true", [1]),
    ),
    scenario(
        "the last version is deleted with its configuration",
        *TWO,
        ok("PUT /config/s", body={"compatibility": "NONE"}),
        ok("PUT /mode/s", body={"mode": "READWRITE"}),
        ok("DELETE /subjects/s", [1, 2]),
        ok("GET /config/s", {"compatibilityLevel": "NONE"}),
        ok("DELETE /subjects/s/versions/1?permanent=true", 1),
        ok("GET /mode/s", {"mode": "READWRITE"}),
        ok("DELETE /subjects/s/versions/2?permanent=true", 2),
        refused("GET /config/s", 40408),
        refused("GET /mode/s", 40409),
    ),
    scenario(
        "a read-only subject",
        *TWO,
        ok("PUT /mode/s", body={"mode": "READONLY"}),
        refused(
            "DELETE /subjects/s/versions/1", 42205, "Subject s in context  is in read-only mode"
        ),
        refused("DELETE /subjects/s", 42205, "Subject s in context  is in read-only mode"),
        refused("DELETE /subjects/s/versions/9", 40402),
        refused("DELETE /subjects/t", 40401),
    ),
    scenario(
        "deleted versions are not compared",
        *TWO,
        ok("DELETE /subjects/s", [1, 2]),
        register("s", STRING, (3, 3)),
    ),
]
