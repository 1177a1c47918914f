"""Metadata and rules of a schema."""

from typing import Any

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
AB = record(field_of("a"), field_of("b", default=0))
TAGGED = {
    "tags": {"R.b": ["x"], "R.a": ["PII", "GDPR", "PII"]},
    "properties": {"owner": "me", "env": "x"},
    "sensitive": ["owner"],
}
SORTED = {
    "tags": {"R.a": ["GDPR", "PII"], "R.b": ["x"]},
    "properties": {"env": "x", "owner": "me"},
    "sensitive": ["owner"],
}
RULE = {"name": "check", "type": "CEL", "mode": "WRITE", "kind": "CONDITION", "expr": "true"}


def properties(**values: str) -> dict[str, Any]:
    """Metadata with properties only."""
    return {"properties": values}


def bad_rule(message: str, kind: str = "domainRules", **changed: Any) -> Step:
    """A request with an invalid rule."""
    rule = {key: one for key, one in {**RULE, **changed}.items() if one is not None}
    return unregistrable("s", A, 42210, message, ruleSet={kind: [rule]})


SCENARIOS = [
    scenario(
        "metadata are sorted, and are part of the identity of a schema",
        register("s", A, (1, 1)),
        register("s", A, {"id": 2, "version": 2, "metadata": SORTED}, metadata=TAGGED),
        ok("GET /subjects/s/versions/2", {"metadata": SORTED}),
        ok("GET /schemas/ids/2", {"metadata": SORTED}),
        ok("GET /schemas/ids/1", {"metadata": ABSENT}),
        register("t", A, (2, 1), metadata=SORTED),
    ),
    scenario(
        "a version inherits from the previous one",
        register("s", A, (1, 1), metadata=properties(k="v")),
        register("s", AB, {"version": 2, "metadata": properties(k="v")}),
        register(
            "s", AB, {"version": 3, "metadata": properties(m="n")}, metadata=properties(m="n")
        ),
    ),
    scenario(
        "precedence between configured defaults and overrides",
        ok(
            "PUT /config/s",
            body={
                "defaultMetadata": properties(a="default", b="default"),
                "overrideMetadata": properties(b="override", c="override"),
            },
        ),
        register(
            "s",
            A,
            {"metadata": properties(a="own", b="override", c="override")},
            metadata=properties(a="own", b="own"),
        ),
        ok(
            "POST /subjects/s",
            {"version": 1},
            body={"schema": A, "metadata": properties(a="own", b="own")},
        ),
        register("t", A, {"metadata": ABSENT}),
    ),
    scenario(
        "the version in the metadata",
        register(
            "s",
            A,
            {"version": 1, "metadata": {"properties": {"confluent:version": "1"}}},
            metadata={"properties": {"confluent:version": "0"}},
        ),
        register("s", A, (1, 1)),
        register("s", AB, {"version": 2, "metadata": {"properties": {"confluent:version": "2"}}}),
    ),
    scenario(
        "the newest version with some properties",
        register("s", A, (1, 1), metadata=properties(env="test", k="1")),
        register("s", AB, (2, 2), metadata=properties(env="prod", k="1")),
        ok("GET /subjects/s/metadata?key=env&value=test", {"version": 1}),
        ok("GET /subjects/s/metadata?key=k&value=1", {"version": 2}),
        ok("GET /subjects/s/metadata?key=k&value=1&key=env&value=test", {"version": 1}),
        ok("GET /subjects/s/metadata?deleted=true&&key=env&value=test&key=more", {"version": 1}),
        ok("GET /subjects/s/metadata", {"version": 2}),
        refused("GET /subjects/s/metadata?key=k&value=2", 40403, "Schema not found"),
        refused("GET /subjects/t/metadata?key=k&value=1", 40401, "Subject 't' not found."),
        ok("DELETE /subjects/s/versions/2", 2),
        ok("GET /subjects/s/metadata?key=k&value=1", {"version": 1}),
        ok("GET /subjects/s/metadata?key=k&value=1&deleted=true", {"version": 2}),
    ),
    scenario(
        "values are strings",
        register(
            "s",
            A,
            {"metadata": {"properties": {"n": "1", "b": "true"}}},
            metadata={"properties": {"n": 1, "b": True}},
        ),
        unregistrable("s", A, 400, metadata=[]),
        unregistrable("s", A, 400, metadata={"properties": {"k": ["v"]}}),
        unregistrable("s", A, 400, metadata={"tags": {"R.a": "PII"}}),
        register("t", STRING, {"metadata": {}}, metadata={}),
    ),
    scenario(
        "rules are stored for the clients that execute them",
        register(
            "s",
            A,
            {"ruleSet": {"domainRules": [{**RULE, "disabled": False}], "migrationRules": ABSENT}},
            ruleSet={"domainRules": [RULE]},
        ),
        ok("GET /schemas/ids/1", {"ruleSet": {"domainRules": [{**RULE, "disabled": False}]}}),
        ok("GET /schemas?ruleType=domain", [{"id": 1}]),
        ok("GET /schemas?ruleType=all", [{"id": 1}]),
        ok("GET /schemas?ruleType=encoding", []),
        register("t", INT, {"ruleSet": ABSENT}),
    ),
    scenario(
        "validation of rules",
        bad_rule("Missing rule name", name=None),
        bad_rule("Empty rule name", name=""),
        bad_rule("Rule name too long", name="n" * 65),
        bad_rule("Illegal initial character in rule name: 1a", name="1a"),
        bad_rule("Illegal character in rule name: a b", name="a b"),
        bad_rule("Missing rule type", type=None),
        bad_rule("Multiple actions only valid with WRITEREAD and UPDOWN", onFailure="ERROR,NONE"),
        bad_rule("Domain rules can only be WRITE, READ, WRITEREAD", mode="UPGRADE"),
        bad_rule(
            "Encoding rules can only be WRITE, READ, WRITEREAD", "encodingRules", mode="UPDOWN"
        ),
        bad_rule("Migration rules can only be UPGRADE, DOWNGRADE, UPDOWN", "migrationRules"),
        unregistrable(
            "s",
            A,
            42210,
            "Found rule with duplicate name 'check'",
            ruleSet={"domainRules": [RULE], "encodingRules": [RULE]},
        ),
        unregistrable("s", A, 400, ruleSet={"domainRules": {}}),
        unregistrable("s", A, 400, ruleSet={"domainRules": [{**RULE, "mode": "SIDEWAYS"}]}),
        refused("PUT /config/s", 42210, body={"defaultRuleSet": {"domainRules": [{}]}}),
    ),
]
