"""Registration of schemas: ids, versions, equality, and refusals in their order."""

from tests.conformance.registry.scenario import (
    ABSENT,
    INT,
    STRING,
    StartsWith,
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
SPACED = '{ "name" : "R",\n "fields":[ {"type": {"type":"int"}, "name":"a"} ], "type":"record" }'
BROKEN = StartsWith("Invalid schema of type AVRO, details: ")
DESCENDING = record(field_of("a", order="descending"))
READ_ONLY = ok("PUT /mode/s", body={"mode": "READONLY"})
NEXT_ONLY = "Version is not one more than previous version"
INCOMPATIBLE = (
    'Schema being registered is incompatible with an earlier schema for subject "s", details: ['
    "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'b' at path "
    "'/fields/1' in the new schema has no default value and is missing in the old schema', "
    "additionalInfo:'b'}, {oldSchemaVersion: 1}, {oldSchema: '" + A + "'}, "
    "{validateFields: 'false', compatibility: 'BACKWARD'}]"
)

SCENARIOS = [
    scenario(
        "the first schema has the first id and version, and its GUID",
        register(
            "s",
            '{"type":"string"}',
            {
                "id": 1,
                "version": 1,
                "guid": "095d71cf-1255-6b9d-5e33-0ad575b3df5d",
                "schemaType": "AVRO",
                "schema": STRING,
                "references": ABSENT,
                "metadata": ABSENT,
                "ruleSet": ABSENT,
                "ts": ABSENT,
                "deleted": ABSENT,
            },
            schemaType="AVRO",
        ),
    ),
    scenario(
        "the sort order of a field is case-insensitive",
        register("s", record(field_of("a", order="DESCENDING")), {"schema": DESCENDING}),
        register("s", DESCENDING, (1, 1)),
        register("t", record(field_of("a", order="Ascending")), {"schema": A}),
        unregistrable("s", record(field_of("a", order="up")), 42201, BROKEN),
    ),
    scenario(
        "registration is idempotent, also under another subject",
        register("s", A, (1, 1)),
        register("s", SPACED, {"id": 1, "version": 1, "schema": A}),
        register("t", A, (1, 1)),
        register("t", AB_0, (2, 2)),
        register("s", AB_0, (2, 2)),
        ok("GET /subjects/s/versions", [1, 2]),
    ),
    scenario(
        "unknown keys and null are ignored",
        register(
            "s", A, (1, 1), unknown=[1], references=None, metadata=None, version=None, id=None
        ),
        register("s", A, (1, 1), schemaType=None, version=0, id=-1),
    ),
    scenario(
        "another documentation is another schema",
        register("s", A, (1, 1)),
        register("s", record(field_of("a"), doc="of a"), (2, 2)),
    ),
    scenario(
        "after a soft delete: the same id, the next version, without the older one",
        register("s", A, (1, 1)),
        ok("DELETE /subjects/s", [1]),
        register("s", A, (1, 2)),
        ok("GET /subjects/s/versions?deleted=true", [2]),
    ),
    scenario(
        "the highest version number is reused after its permanent deletion",
        register("s", A, (1, 1)),
        register("s", AB_0, (2, 2)),
        ok("DELETE /subjects/s/versions/2", 2),
        ok("DELETE /subjects/s/versions/2?permanent=true", 2),
        ok("DELETE /subjects/s/versions/1", 1),
        register("s", record(field_of("c", default=0)), (3, 2)),
    ),
    scenario(
        "a requested version must be the next one, and is in the metadata",
        register("s", A, (1, 1)),
        unregistrable("s", A, 42201, NEXT_ONLY, version=1),
        unregistrable("s", A, 42201, NEXT_ONLY, version=3),
        register(
            "s",
            A,
            {"id": 2, "version": 2, "metadata": {"properties": {"confluent:version": "2"}}},
            version=2,
        ),
        register("s", A, (2, 2), version=-1),
        register("s", AB_0, {"id": 3, "version": 3}, version=-1),
    ),
    scenario(
        "without a schema: the previous one with other metadata",
        unregistrable("s", "", 42201, "Empty schema"),
        register("s", A, (1, 1)),
        register(
            "s", "", {"id": 2, "version": 2, "schema": A}, metadata={"properties": {"k": "v"}}
        ),
        refused("POST /subjects/t/versions", 42201, "Empty schema", body={}),
    ),
    scenario(
        "other types than Avro",
        unregistrable("s", "", 42201, "Invalid schema type PROTOBUF", schemaType="PROTOBUF"),
        unregistrable("s", A, 42201, "Invalid schema type avro", schemaType="avro"),
        *(
            unregistrable("s", text, 42201, BROKEN)
            for text in (
                "{",
                '"integer"',
                "integer",
                "[]]",
                '{"type":"record","name":"R"}',
                record(field_of("a-b")),
                record(field_of("a", "string", default=None)),
                record(field_of("a"), field_of("a")),
                record(field_of("a"), namespace="a-bad.namespace"),
                '["int","int"]',
                '{"type":"enum","name":"E","symbols":["A","A"]}',
                "[" * 100_000,
                '{"type":"array","items":' * 5_000,
            )
        ),
        ok("GET /subjects", []),
    ),
    scenario(
        "incompatible with the previous version",
        register("s", A, (1, 1)),
        unregistrable("s", AB, 40901, INCOMPATIBLE),
        ok("GET /subjects/s/versions", [1]),
        register("other", AB, (2, 1)),
    ),
    scenario(
        "invalid subject names",
        *(
            unregistrable(sent, A, 42208, f"The specified subject '{name}' is not a valid.")
            for sent, name in (
                ("a%0Ab", "a\nb"),
                ("a%00", "a\0"),
                ("%C2%85", "\x85"),
                ("__GLOBAL", "__GLOBAL"),
                ("__EMPTY", "__EMPTY"),
                (":.__GLOBAL:s", ":.__GLOBAL:s"),
            )
        ),
        ok("GET /subjects", []),
    ),
    scenario(
        "unusual valid subject names",
        register("a%2Fb", A, (1, 1)),
        register("%C3%A4%20%2B%25", A, (1, 1)),
        register(":x:y", A, (1, 1)),
        register("__global", A, (1, 1)),
        register(":.:plain", A, (1, 1)),
        ok("GET /subjects", [":x:y", "__global", "a/b", "plain", "ä +%"]),
        ok("GET /subjects/a%2Fb/versions", [1]),
        ok("GET /subjects?subjectPrefix=%C3%A4+", ["ä +%"]),
        ok("GET /schemas/ids/1?subject=%C3%A4%20%2B%25", {"subject": "ä +%"}),
        ok("GET /subjects/%C3%A4%20%2B%25/versions/1", {"subject": "ä +%"}),
    ),
    scenario(
        "order of errors: name, schema, mode, compatibility, version",
        register("s", A, (1, 1)),
        unregistrable("__GLOBAL", "{", 42208),
        READ_ONLY,
        unregistrable("s", "{", 42201, BROKEN),
        unregistrable("s", AB, 42205, "Subject s in context  is in read-only mode"),
        unregistrable("s", "", 42205, "Subject s in context  is in read-only mode"),
        ok("DELETE /mode/s"),
        unregistrable("s", AB, 40901, version=7),
        unregistrable("s", AB_0, 42201, NEXT_ONLY, version=7),
        unregistrable("s", AB_0, 42205, "Subject s in context  is not in import mode", id=7),
    ),
    scenario(
        "a registered version can be specified with its id",
        register("s", A, (1, 1)),
        register("s", A, (1, 1), id=1),
        register("s", A, (1, 1), id=1, version=1),
        unregistrable("s", A, 42205, "Subject s in context  is not in import mode", id=2),
    ),
    scenario(
        "ids are counted for the whole registry, versions for each subject",
        register("s", STRING, (1, 1)),
        register("t", INT, (2, 1)),
        register("u", A, (3, 1)),
    ),
]
