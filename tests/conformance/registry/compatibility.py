"""Compatibility of schemas: levels, and messages about incompatibilities."""

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
    unregistrable,
)

A = record(field_of("a"))
AB = record(field_of("a"), field_of("b"))
AB_0 = record(field_of("a"), field_of("b", default=0))
A_TEXT = record(field_of("a", "string"))
B_0 = record(field_of("b", default=0))
FITS = {"is_compatible": True, "messages": ABSENT}
FAILS = {"is_compatible": False, "messages": ABSENT}


def described(kind: str, description: str, info: str) -> str:
    """The message of one incompatibility."""
    return f"{{errorType:'{kind}', description:'{description}', additionalInfo:'{info}'}}"


def trailer(old: str, version: int = 1, level: str = "BACKWARD") -> list[str]:
    """The messages that follow those of the incompatibilities."""
    return [
        f"{{oldSchemaVersion: {version}}}",
        f"{{oldSchema: '{old}'}}",
        f"{{validateFields: 'false', compatibility: '{level}'}}",
    ]


def lacking(reader: str, writer: str) -> str:
    """The message of a reader's second field b that the writer's schema lacks."""
    return described(
        "READER_FIELD_MISSING_DEFAULT_VALUE",
        f"The field 'b' at path '/fields/1' in the {reader} schema has no default value and is "
        f"missing in the {writer} schema",
        "b",
    )


def mismatch(path: str, reader: str, writer: str) -> str:
    """The message of a new type that cannot read an old one."""
    return described(
        "TYPE_MISMATCH",
        f"The type (path '{path}') of a field in the new schema does not match with the old schema",
        f"reader type: {reader} not compatible with writer type: {writer}",
    )


def level(name: str) -> Step:
    """Set the level of the subject s."""
    return ok("PUT /config/s", {"compatibility": name}, body={"compatibility": name})


def fits(schema: str, answer: Any, where: str = "/latest", query: str = "") -> Step:
    """Check a schema's compatibility with the subject s."""
    path = f"POST /compatibility/subjects/s/versions{where}{query}"
    return ok(path, answer, body={"schema": schema})


def why(schema: str, messages: Any, where: str = "/latest") -> Step:
    """Check a schema's compatibility, with messages."""
    return fits(schema, {"is_compatible": False, "messages": messages}, where, "?verbose=True")


def enum(*symbols: str) -> str:
    """An enumeration."""
    return record(field_of("e", {"type": "enum", "name": "E", "symbols": list(symbols)}))


def fixed(size: int) -> str:
    """Bytes of a fixed number."""
    return record(field_of("f", {"type": "fixed", "name": "F", "size": size}))


SCENARIOS = [
    scenario(
        "with one version, and with all versions of the level",
        register("s", A, (1, 1)),
        register("s", AB_0, (2, 2)),
        fits(AB_0, FITS),
        fits(AB, FAILS, "/1"),
        fits(AB, FITS, "/2"),
        fits(AB, FITS, ""),
        level("BACKWARD_TRANSITIVE"),
        fits(AB, FAILS, ""),
        fits(AB, FITS, "/latest"),
        fits(AB_0, {"is_compatible": True}, "", "?verbose=true"),
    ),
    scenario(
        "without a version to compare with",
        fits(A, FITS),
        fits(A, FITS, "", "?normalize=False"),
        register("s", A, (1, 1)),
        ok("DELETE /subjects/s", [1]),
        fits(STRING, FITS),
        fits(STRING, FITS, ""),
        refused(
            "POST /compatibility/subjects/s/versions/1",
            40402,
            "Version 1 not found.",
            body={"schema": A},
        ),
        refused("POST /compatibility/subjects/t/versions/1", 40402, body={"schema": A}),
        refused("POST /compatibility/subjects/t/versions/0", 42202, body={"schema": A}),
    ),
    scenario(
        "the message of each incompatibility",
        register("s", A, (1, 1)),
        why(AB, [lacking("new", "old"), *trailer(A)]),
        why(A_TEXT, [mismatch("/fields/0/type", "STRING", "INT"), *trailer(A)]),
        why(STRING, [mismatch("/", "STRING", "RECORD"), *trailer(A)]),
        why(
            record(field_of("a"), name="Other"),
            [
                described(
                    "NAME_MISMATCH",
                    "The name of the schema has changed (path '/name')",
                    "expected: R",
                ),
                *trailer(A),
            ],
        ),
        ok("DELETE /subjects/s"),
        register("s", enum("A", "B", "C")),
        why(
            enum("A"),
            [
                described(
                    "MISSING_ENUM_SYMBOLS",
                    "The new schema is missing enum symbols '[B, C]' at path "
                    "'/fields/0/type/symbols' in the old schema",
                    "[B, C]",
                ),
                *trailer(enum("A", "B", "C"), 2),
            ],
        ),
        ok("DELETE /subjects/s"),
        register("s", fixed(4)),
        why(
            fixed(8),
            [
                described(
                    "FIXED_SIZE_MISMATCH",
                    "The size of FIXED type field at path '/fields/0/type/size' in the new schema "
                    "does not match with the old schema",
                    "expected: 4, found: 8",
                ),
                *trailer(fixed(4), 3),
            ],
        ),
        ok("DELETE /subjects/s"),
        register("s", '["int","string"]'),
        why(
            '["string"]',
            [
                described(
                    "MISSING_UNION_BRANCH",
                    "The new schema is missing a type inside a union field at path '/0' in the "
                    "old schema",
                    "reader union lacking writer type: INT",
                ),
                *trailer('["int","string"]', 4),
            ],
        ),
    ),
    scenario(
        "forward and full",
        register("s", AB, (1, 1)),
        level("FORWARD"),
        why(A, [lacking("old", "new"), *trailer(AB, level="FORWARD")]),
        fits(record(field_of("a"), field_of("b"), field_of("c")), FITS),
        level("FULL"),
        why(A, [lacking("old", "new"), *trailer(AB, level="FULL")]),
        fits(record(field_of("a"), field_of("b"), field_of("c", default=0)), FITS),
        fits(record(field_of("a"), field_of("b"), field_of("c")), FAILS),
        level("NONE"),
        fits(STRING, FITS),
        fits(STRING, FITS, ""),
    ),
    scenario(
        "transitive levels stop at the first incompatible version",
        level("NONE"),
        register("s", A_TEXT, (1, 1)),
        register("s", INT, (2, 2)),
        register("s", B_0, (3, 3)),
        level("BACKWARD_TRANSITIVE"),
        why(
            A,
            [
                StartsWith("{errorType:'READER_FIELD_MISSING"),
                *trailer(B_0, 3, "BACKWARD_TRANSITIVE"),
            ],
            "",
        ),
        level("FORWARD_TRANSITIVE"),
        why(
            B_0,
            [StartsWith("{errorType:'TYPE_MISMATCH'"), *trailer(INT, 2, "FORWARD_TRANSITIVE")],
            "",
        ),
        level("FULL_TRANSITIVE"),
        fits(B_0, FAILS, ""),
        fits(B_0, FITS),
    ),
    scenario(
        "an invalid schema",
        register("s", A, (1, 1)),
        refused("POST /compatibility/subjects/s/versions", 42201, body={"schema": "{"}),
        refused(
            "POST /compatibility/subjects/s/versions/latest",
            42201,
            "Empty schema",
            body={"schema": ""},
        ),
        why("", ["Empty schema"]),
        why("{", [StartsWith("Invalid schema of type AVRO, details: ")]),
        why(record(field_of("a", default="x")), [StartsWith("Invalid schema of type AVRO")]),
    ),
    scenario(
        "registration applies the level",
        level("FORWARD"),
        register("s", A, (1, 1)),
        register("s", AB, (2, 2)),
        unregistrable("s", STRING, 40901),
        level("NONE"),
        register("s", STRING, (3, 3)),
        ok("DELETE /config/s", {"compatibilityLevel": "NONE"}),
        unregistrable("s", INT, 40901),
    ),
    scenario(
        "checks ignore the mode",
        register("s", A, (1, 1)),
        ok("PUT /mode/s", body={"mode": "READONLY"}),
        fits(AB_0, FITS),
        fits(AB, FAILS, ""),
    ),
    scenario(
        "only versions of the same group are compared",
        ok("PUT /config/s", body={"compatibilityGroup": "major"}),
        register("s", A, {"version": 1}, metadata={"properties": {"major": "1"}}),
        register("s", STRING, {"version": 2}, metadata={"properties": {"major": "2"}}),
        unregistrable("s", INT, 40901, metadata={"properties": {"major": "2"}}),
        register("s", AB_0, {"version": 3}, metadata={"properties": {"major": "1"}}),
    ),
    scenario(
        "reserved fields",
        ok("PUT /config/s", {"validateFields": True}, body={"validateFields": True}),
        unregistrable(
            "s",
            A,
            40901,
            StartsWith(
                "Schema being registered is incompatible with an earlier schema for subject "
                '"s", details: [The new schema has field that conflicts with the reserved field a.'
            ),
            metadata={"properties": {"confluent:reserved": "a"}},
        ),
        register("s", A, (1, 1), metadata={"properties": {"confluent:reserved": "x, y"}}),
        unregistrable(
            "s",
            AB_0.replace('"b"', '"y"'),
            40901,
            StartsWith(
                "Schema being registered is incompatible with an earlier schema for subject "
                '"s", details: [The new schema has field that conflicts with the reserved field y.'
            ),
        ),
        unregistrable(
            "s",
            AB_0,
            40901,
            StartsWith(
                "Schema being registered is incompatible with an earlier schema for subject "
                '"s", details: [The new schema has reserved field y removed from its metadata '
                "which is present in the old schema's metadata."
            ),
            metadata={"properties": {"confluent:reserved": "x"}},
        ),
    ),
]
