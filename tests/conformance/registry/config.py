"""Configurations: of subjects, of contexts, and global."""

from tests.conformance.registry.scenario import ABSENT, ok, refused, scenario

LEVELS = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)
NO_LEVEL = (
    "Invalid compatibility level. Valid values are none, backward, forward, full, "
    "backward_transitive, forward_transitive, and full_transitive"
)
NONE_OF_S = "Subject 's' does not have subject-level compatibility configured"
PUT_S = "PUT /config/s"
PUT_ALL = "PUT /config"

SCENARIOS = [
    scenario(
        "defaults",
        ok("GET /config", {"compatibilityLevel": "BACKWARD", "compatibility": ABSENT}),
        ok("GET /config?defaultToGlobal=true", {"compatibilityLevel": "BACKWARD"}),
        refused("GET /config/s", 40408, NONE_OF_S),
        refused("GET /config/s?defaultToGlobal=no", 40408, NONE_OF_S),
        ok("GET /config/s?defaultToGlobal=TRUE", {"compatibilityLevel": "BACKWARD"}),
        refused("DELETE /config/s", 40401, "Subject 's' not found."),
        ok("DELETE /config", {"compatibilityLevel": "BACKWARD"}),
    ),
    scenario(
        "every level, case-insensitive",
        *(
            step
            for name in LEVELS
            for step in (
                ok(PUT_S, {"compatibility": name}, body={"compatibility": name.lower()}),
                ok("GET /config/s", {"compatibilityLevel": name}),
            )
        ),
        refused(PUT_S, 42203, NO_LEVEL, body={"compatibility": "SIDEWAYS"}),
        refused(PUT_S, 42203, NO_LEVEL, body={"compatibility": ""}),
        refused(PUT_S, 42203, NO_LEVEL, body={"compatibility": 7}),
        refused(PUT_ALL, 42203, NO_LEVEL, body={"compatibility": "x"}),
    ),
    scenario(
        "global",
        ok(PUT_ALL, {"compatibility": "FULL"}, body={"compatibility": "full"}),
        ok("GET /config", {"compatibilityLevel": "FULL"}),
        ok("GET /config/s?defaultToGlobal=true", {"compatibilityLevel": "FULL"}),
        ok("GET /config/:.:", {"compatibilityLevel": "FULL"}),
        ok("GET /config/:.c:s?defaultToGlobal=true", {"compatibilityLevel": "BACKWARD"}),
        ok("DELETE /config", {"compatibilityLevel": "FULL"}),
        ok("GET /config", {"compatibilityLevel": "BACKWARD"}),
    ),
    scenario(
        "omitted fields are unchanged, null clears, the response is complete",
        ok(PUT_S, {"compatibility": "NONE"}, body={"compatibility": "NONE", "normalize": True}),
        ok(
            PUT_S,
            {"compatibility": "NONE", "normalize": True, "compatibilityGroup": "g"},
            body={"compatibilityGroup": "g"},
        ),
        ok(PUT_S, {"compatibility": ABSENT, "normalize": True}, body={"compatibility": None}),
        ok("GET /config/s", {"compatibilityLevel": "BACKWARD", "normalize": True}),
        ok(PUT_S, {"normalize": True}, body={"compatibilityLevel": "FULL"}),
        ok(PUT_S, {"normalize": False}, body={"normalize": False, "alias": ""}),
        ok("DELETE /config/s", {"normalize": False, "compatibilityGroup": "g"}),
        refused("GET /config/s", 40408, NONE_OF_S),
    ),
    scenario(
        "each field is inherited from the subject, its context, the global context",
        ok("PUT /config/:.__GLOBAL:", body={"compatibilityPolicy": "LENIENT"}),
        ok("PUT /config/:.c:", body={"normalize": True}),
        ok("PUT /config/:.c:s", body={"compatibility": "FULL"}),
        ok(
            "GET /config/:.c:s?defaultToGlobal=true",
            {"compatibilityLevel": "FULL", "normalize": True, "compatibilityPolicy": "LENIENT"},
        ),
        ok(
            "GET /config/t?defaultToGlobal=true",
            {
                "compatibilityLevel": "BACKWARD",
                "normalize": ABSENT,
                "compatibilityPolicy": "LENIENT",
            },
        ),
        ok("DELETE /config/:.__GLOBAL:", {"compatibilityPolicy": "LENIENT"}),
        refused("GET /config/:.__GLOBAL:", 40408),
    ),
    scenario(
        "every field",
        ok(
            PUT_S,
            {
                "alias": "t",
                "normalize": True,
                "validateFields": True,
                "validateNewSchemas": False,
                "validateRules": False,
                "compatibility": "NONE",
                "compatibilityPolicy": "STRICT",
                "compatibilityGroup": "g",
                "defaultMetadata": {"properties": {"a": "1"}},
                "overrideMetadata": {"tags": {"R.a": ["PII"]}},
            },
            body={
                "alias": "t",
                "normalize": True,
                "validateFields": True,
                "validateNewSchemas": False,
                "validateRules": False,
                "compatibility": "NONE",
                "compatibilityPolicy": "STRICT",
                "compatibilityGroup": "g",
                "defaultMetadata": {"properties": {"a": "1"}},
                "overrideMetadata": {"tags": {"R.a": ["PII"]}},
            },
        ),
        ok("GET /config/s", {"alias": "t", "compatibilityLevel": "NONE"}),
    ),
    scenario(
        "invalid values",
        refused(PUT_S, 400, body={"normalize": "yes"}),
        refused(PUT_S, 400, body={"alias": ["t"]}),
        refused(PUT_S, 400, body={"defaultMetadata": []}),
        refused(
            "PUT /config/__GLOBAL",
            42208,
            "The specified subject '__GLOBAL' is not a valid.",
            body={"compatibility": "NONE"},
        ),
        refused("PUT /config/a%0Ab", 42208, body={"compatibility": "NONE"}),
        refused("PUT /config/__EMPTY", 42208, body={"compatibility": "NONE"}),
        refused("PUT /config/__EMPTY", 42203, body={"compatibility": "x"}),
    ),
    scenario(
        "refused while read-only",
        ok(PUT_S, body={"compatibility": "NONE"}),
        ok("PUT /mode/s", body={"mode": "READONLY"}),
        refused(
            PUT_S,
            42205,
            "Subject s in context  is in read-only mode",
            body={"compatibility": "FULL"},
        ),
        refused("DELETE /config/s", 42205, "Subject s in context  is in read-only mode"),
        ok("PUT /mode", body={"mode": "READONLY"}),
        refused(
            PUT_ALL,
            42205,
            "Subject null in context  is in read-only mode",
            body={"compatibility": "FULL"},
        ),
        refused("DELETE /config/t", 40401),
        ok("PUT /mode/:.c:", body={"mode": "READONLY"}),
        refused(
            "PUT /config/:.c:t",
            42205,
            "Subject :.c:t in context :.c: is in read-only mode",
            body={"compatibility": "FULL"},
        ),
    ),
]
