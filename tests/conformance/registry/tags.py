"""Inline tags of records and fields in the text of a schema."""

from typing import Any

from tests.conformance.registry.scenario import (
    ABSENT,
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

PLAIN = record(field_of("f1", "string"), name="myrecord")
TAGS = "POST /subjects/s/versions/latest/tags"


def tagged(*tags: str) -> str:
    """The schema with tags on the record."""
    whole = record(field_of("f1", "string"), name="myrecord")
    listed = ",".join(f'"{tag}"' for tag in tags)
    return f'{whole[:-1]},"confluent:tags":[{listed}]}}'


def on(path: str, *tags: str, kind: str = "sr_record") -> dict[str, Any]:
    """Tags of an entity."""
    return {"schemaEntity": {"entityPath": path, "entityType": kind}, "tags": list(tags)}


def field_tagged(*tags: str) -> str:
    """The schema with tags on the field."""
    return record(field_of("f1", "string", **{"confluent:tags": list(tags)}), name="myrecord")


def retagged(number: int, schema: str, **body: Any) -> Step:
    """Change tags; the new version's properties contain its number."""
    answer = {
        "id": number,
        "version": number,
        "schema": schema,
        "metadata": {"properties": {"confluent:version": str(number)}},
    }
    return ok(TAGS, answer, body=body)


def migration(name: str, tag: str = "PII") -> dict[str, Any]:
    """A migration rule."""
    return {"name": name, "mode": "UPGRADE", "type": "T", "tags": [tag]}


def rule_set(*rules: dict[str, Any]) -> dict[str, Any]:
    """Rules in the form of responses."""
    return {
        "migrationRules": [{**rule, "kind": "TRANSFORM", "disabled": False} for rule in rules],
    }


BAD_TAGS: tuple[Any, ...] = (
    {},
    [1],
    [{"tags": []}],
    [{"schemaEntity": {"entityPath": "a", "entityType": "sr_record"}}],
    [on("a", "A", kind="record")],
    [{**on("a"), "tags": [1]}],
)

SCENARIOS = [
    scenario(
        "added and removed by new versions",
        register("s", PLAIN, (1, 1)),
        retagged(
            2, tagged("TAG1", "TAG2"), newVersion=2, tagsToAdd=[on("myrecord", "TAG1", "TAG2")]
        ),
        ok("GET /subjects/s/versions/latest", {"version": 2, "schema": tagged("TAG1", "TAG2")}),
        retagged(3, tagged("TAG1"), tagsToRemove=[on(".myrecord", "TAG2")]),
        retagged(4, PLAIN, newVersion=4, tagsToRemove=[on("myrecord", "TAG1", "TAG9")]),
        retagged(5, field_tagged("A"), tagsToAdd=[on("myrecord.f1", "A", kind="sr_field")]),
        ok("GET /subjects/s/versions", [1, 2, 3, 4, 5]),
    ),
    scenario(
        "with metadata, and with rules that are set, merged or removed",
        register("s", PLAIN, (1, 1), metadata={"properties": {"k": "v"}}),
        ok(
            TAGS,
            {"metadata": {"properties": {"confluent:version": "2", "k": "v"}}},
            body={"tagsToAdd": [on("myrecord", "A")]},
        ),
        ok(
            TAGS,
            {
                "metadata": {"properties": {"confluent:version": "3", "own": "1"}},
                "ruleSet": rule_set(migration("a"), migration("b")),
            },
            body={
                "metadata": {"properties": {"own": "1"}},
                "rulesToMerge": {"migrationRules": [migration("a"), migration("b")]},
                "rulesToRemove": ["nothing"],
            },
        ),
        ok(
            TAGS,
            {"ruleSet": rule_set(migration("b", "X"), migration("c"))},
            body={
                "newVersion": 4,
                "rulesToMerge": {"migrationRules": [migration("b", "X"), migration("c")]},
                "rulesToRemove": ["a"],
            },
        ),
        ok(
            TAGS,
            {"ruleSet": rule_set(migration("d"))},
            body={"ruleSet": {"migrationRules": [migration("d")]}},
        ),
        refused(
            TAGS,
            42210,
            "ruleSet should be omitted if specifying rulesToMerge or rulesToRemove",
            body={"ruleSet": {}, "rulesToRemove": []},
        ),
        refused(TAGS, 42210, "Missing rule name", body={"rulesToMerge": {"domainRules": [{}]}}),
    ),
    scenario(
        "of missing entities",
        refused(TAGS, 40401, "Subject 's' not found.", body={}),
        register("s", PLAIN, (1, 1)),
        refused("POST /subjects/s/versions/2/tags", 40402, "Version 2 not found.", body={}),
        refused("POST /subjects/s/versions/x/tags", 42202, body={}),
        refused("POST /subjects/__GLOBAL/versions/1/tags", 42208, body={}),
        refused(
            TAGS,
            42201,
            "No matching path 'does.not.exist' found in the schema",
            body={"tagsToAdd": [on("does.not.exist", "A", kind="sr_field")]},
        ),
        refused(
            TAGS,
            42201,
            "Version is not one more than previous version",
            body={"newVersion": 1, "tagsToAdd": [on("myrecord", "A")]},
        ),
        *(refused(TAGS, 400, body={"tagsToAdd": wrong}) for wrong in BAD_TAGS),
        register(":.o:there", PLAIN),
        refused(
            "POST /subjects/there/versions/1/tags", 40401, "Subject 'there' not found.", body={}
        ),
        *(refused(TAGS, 400, body={"rulesToRemove": wrong}) for wrong in ("a", [1])),
        ok("PUT /mode/s", body={"mode": "READONLY"}),
        refused(TAGS, 42205, body={"tagsToAdd": [on("myrecord", "A")]}),
    ),
    scenario(
        "in the registration of a schema",
        register(
            "s", PLAIN, {"version": 1, "schema": tagged("A")}, schemaTagsToAdd=[on("myrecord", "A")]
        ),
        register(
            "s",
            tagged("A", "B"),
            {
                "version": 2,
                "schema": tagged("B"),
                "metadata": {"properties": {"confluent:version": "2"}},
            },
            schemaTagsToRemove=[on("myrecord", "A")],
        ),
        register("s", tagged("B"), (2, 2), schemaTagsToAdd=[on("myrecord", "B")]),
        unregistrable("s", PLAIN, 42201, schemaTagsToAdd=[on("x", "A")]),
        unregistrable("s", STRING, 42201, schemaTagsToAdd=[on("x", "A")]),
        unregistrable("s", PLAIN, 400, schemaTagsToAdd={}),
    ),
    scenario(
        "inherited from the previous version, for entities of both",
        register("s", tagged("A"), (1, 1)),
        register("s", PLAIN, {"version": 1}, propagateSchemaTags=True),
        register(
            "s",
            field_tagged("X"),
            {"version": 2, "schema": field_tagged("X")[:-1] + ',"confluent:tags":["A"]}'},
            propagateSchemaTags=True,
        ),
        register("t", PLAIN, {"version": 1, "schema": PLAIN}, propagateSchemaTags=True),
    ),
    scenario(
        "findTags",
        register("s", tagged("A", "B"), (1, 1)),
        *(
            ok(f"GET /{path}?findTags={tags}", {"schemaTags": found})
            for path in ("subjects/s/versions/1", "schemas/ids/1")
            for tags, found in (
                ("*", [on("myrecord", "A", "B")]),
                ("x&findTags=B", [on("myrecord", "A", "B")]),
                ("x", ABSENT),
                ("", ABSENT),
            )
        ),
        ok("GET /subjects/s/versions/1", {"schemaTags": ABSENT}),
    ),
]
