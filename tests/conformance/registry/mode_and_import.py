"""Modes, and import of schemas with their ids."""

from tests.conformance.registry.scenario import (
    ABSENT,
    INT,
    STRING,
    Step,
    field_of,
    ok,
    record,
    refused,
    register,
    scenario,
    unregistrable,
)

A = record(field_of("a"))
AB = record(field_of("a"), field_of("b"))
NO_MODE = "Invalid mode. Valid values are READWRITE, READONLY, and IMPORT."
NONE_OF_S = "Subject 's' does not have subject-level mode configured"
LAST = 2**31 - 1
TO_S = {"name": "n", "subject": "s", "version": 1}
FOUND = "Cannot import since found existing subjects"


def mode(name: str, where: str = "", query: str = "") -> Step:
    """Set a mode."""
    return ok(f"PUT /mode{where}{query}", {"mode": name}, body={"mode": name})


def in_force(name: str, where: str) -> Step:
    """The effective mode."""
    return ok(f"GET /mode{where}?defaultToGlobal=true", {"mode": name})


SCENARIOS = [
    scenario(
        "defaults",
        ok("GET /mode", {"mode": "READWRITE"}),
        refused("GET /mode/s", 40409, NONE_OF_S),
        in_force("READWRITE", "/s"),
        refused("DELETE /mode/s", 40401, "Subject 's' not found."),
        ok("DELETE /mode", {"mode": "READWRITE"}),
    ),
    scenario(
        "set, shown and removed",
        mode("READONLY", "/s"),
        ok("GET /mode/s", {"mode": "READONLY"}),
        mode("readwrite", "/s"),
        ok("GET /mode/s", {"mode": "READWRITE"}),
        ok("DELETE /mode/s", {"mode": "READWRITE"}),
        refused("GET /mode/s", 40409, NONE_OF_S),
        mode("READONLY", "/s"),
        ok("PUT /mode/s", {"mode": ABSENT}, body={"mode": None}),
        refused("GET /mode/s", 40409, NONE_OF_S),
        mode("READONLY"),
        ok("GET /mode", {"mode": "READONLY"}),
        in_force("READONLY", "/s"),
        ok("DELETE /mode", {"mode": "READONLY"}),
        ok("GET /mode", {"mode": "READWRITE"}),
    ),
    scenario(
        "invalid modes",
        refused("PUT /mode", 42204, NO_MODE, body={"mode": "SLEEPING"}),
        refused("PUT /mode/s", 42204, NO_MODE, body={"mode": 1}),
        refused("PUT /mode/s", 42204, NO_MODE, body={}),
        refused(
            "PUT /mode/__GLOBAL",
            42208,
            "The specified subject '__GLOBAL' is not a valid.",
            body={"mode": "SLEEPING"},
        ),
    ),
    scenario(
        "the nearest scope has precedence",
        mode("READONLY", "/:.__GLOBAL:"),
        in_force("READONLY", ""),
        in_force("READONLY", "/:.c:s"),
        mode("READWRITE", "/:.c:"),
        in_force("READWRITE", "/:.c:s"),
        mode("READONLY", "/:.c:s"),
        in_force("READONLY", "/:.c:s"),
        in_force("READWRITE", "/:.c:t"),
    ),
    scenario(
        "the global override has precedence over all",
        register("s", STRING, (1, 1)),
        mode("READONLY_OVERRIDE"),
        mode("READWRITE", "/s"),
        unregistrable("s", A, 42205, "Subject s in context  is in read-only mode"),
        in_force("READONLY_OVERRIDE", "/:.c:s"),
    ),
    scenario(
        "modes of a context and its subjects are removed together",
        mode("READONLY", "/:.c:"),
        mode("READONLY", "/:.c:s"),
        mode("READONLY", "/:.d:s"),
        ok("DELETE /mode/:.c:?recursive=true", {"mode": "READONLY"}),
        in_force("READWRITE", "/:.c:s"),
        in_force("READONLY", "/:.d:s"),
        mode("READONLY", "/s"),
        ok("DELETE /mode?recursive=true", {"mode": ABSENT}),
        in_force("READWRITE", "/s"),
    ),
    scenario(
        "read-only: reads and existing schemas are accepted",
        register("s", A, (1, 1)),
        mode("READONLY"),
        register("s", A, (1, 1)),
        unregistrable("s", STRING, 42205, "Subject s in context  is in read-only mode"),
        unregistrable("t", A, 42205, "Subject t in context  is in read-only mode"),
        register(":.c:t", A, (1, 1)),
        ok("POST /subjects/s", {"version": 1}, body={"schema": A}),
    ),
    scenario(
        "import preserves ids and versions",
        mode("IMPORT"),
        register("s", A, (100, 7), id=100, version=7),
        register("s", STRING, (50, 8), id=50),
        register("t", A, (100, 1), id=100),
        register("s", A, (200, 9), id=200),
        register("s", A, (100, 7), id=100, version=7),
        ok("GET /schemas/ids/200", {"subject": "s", "version": 9, "schema": A}),
        ok(
            "GET /schemas/ids/100/versions",
            [{"subject": "s", "version": 7}, {"subject": "t", "version": 1}],
        ),
        unregistrable(
            "s",
            INT,
            42205,
            "Overwrite new schema with id 100 in context  is not permitted.",
            id=100,
        ),
        unregistrable("s", INT, 42205, "Subject s in context  is not in read-write mode"),
        register("s", STRING, {"id": 50}),
        mode("READWRITE"),
        register("u", INT, (201, 1)),
    ),
    scenario(
        "the highest id does not stop the assignment of ids",
        register("s", A, (1, 1)),
        mode("IMPORT", "/i"),
        register("i", STRING, (LAST, 1), id=LAST),
        register("t", INT, (2, 1)),
        ok("GET /schemas/ids/2?fetchMaxId=true", {"maxId": LAST}),
    ),
    scenario(
        "referenced schemas are not replaced",
        mode("IMPORT"),
        register("s", A, (1, 1), id=1),
        register("t", STRING, (2, 1), id=2, references=[TO_S]),
        unregistrable("s", INT, 42206, id=3, version=1),
        unregistrable("s", INT, 42206, id=3, version=1, references=[TO_S]),
        register("s", A, (4, 1), id=4, version=1),
        ok("DELETE /subjects/t", [1]),
        unregistrable("s", INT, 42206, id=3, version=1),
        ok("DELETE /subjects/t?permanent=true", [1]),
        unregistrable("s", INT, 42206, id=3, version=1, references=[TO_S]),
        register("s", INT, (3, 1), id=3, version=1),
    ),
    scenario(
        "without compatibility checks and inheritance",
        mode("IMPORT"),
        register("s", A, (1, 1), id=1, version=1, metadata={"properties": {"k": "v"}}),
        register("s", AB, {"id": 2, "version": 2, "metadata": ABSENT}, id=2, version=2),
        unregistrable("s", "", 42201, id=3, version=3),
    ),
    scenario(
        "import needs a scope without subjects, or force",
        register("s", A, (1, 1)),
        refused("PUT /mode/s", 42205, FOUND, body={"mode": "IMPORT"}),
        refused("PUT /mode", 42205, FOUND, body={"mode": "IMPORT"}),
        refused("PUT /mode/:.__GLOBAL:", 42205, FOUND, body={"mode": "IMPORT"}),
        mode("IMPORT", "/t"),
        mode("IMPORT", "/:.c:"),
        mode("IMPORT", "/:.__GLOBAL:s"),
        mode("IMPORT", "/s", "?force=true"),
        mode("IMPORT", "/s"),
        ok("GET /subjects/s/versions", [1]),
    ),
    scenario(
        "import deletes soft-deleted versions permanently",
        register("s", A, (1, 1)),
        ok("DELETE /subjects/s", [1]),
        mode("IMPORT", "/s"),
        ok("GET /subjects?deleted=true", []),
        register("s", STRING, (1, 1), id=1, version=1),
    ),
    scenario(
        "forward equals import",
        mode("FORWARD"),
        register("s", A, (3, 1), id=3),
        unregistrable("s", STRING, 42205, "Subject s in context  is not in read-write mode"),
    ),
]
