"""Schemas with references to other schemas."""

from typing import Any

from tests.conformance.registry.scenario import (
    Raw,
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

PART = record(field_of("a"), name="Part", namespace="n")
WHOLE = record(field_of("part", "n.Part"), name="Whole")
BOX = record(field_of("whole", "Whole"), name="Box")
WRITTEN_OUT = record(
    field_of(
        "part",
        {"type": "record", "name": "Part", "namespace": "n", "fields": [field_of("a")]},
    ),
    name="Whole",
)
NONE_FOUND = "Invalid schema of type AVRO, details: No schema reference found for subject "


def to(subject: str, version: int = 1, name: str = "n.Part") -> dict[str, Any]:
    """A reference."""
    return {"name": name, "subject": subject, "version": version}


FILLED = (register("part", PART, (1, 1)), register("whole", WHOLE, (2, 1), references=[to("part")]))


UNFIT = refused(
    "POST /compatibility/subjects/whole/versions",
    42201,
    f'{NONE_FOUND}"part" and version 1',
    body={"schema": WHOLE, "references": [to("part")]},
)
FIT = ok(
    "POST /compatibility/subjects/whole/versions",
    {"is_compatible": True},
    body={"schema": WHOLE, "references": [to("part")]},
)


def bad(reference: Any, code: int, message: Any) -> Step:
    """A request with a reference that is refused."""
    return unregistrable("whole", WHOLE, code, message, references=[reference])


ORDER = '{"type":"enum","name":"Order","symbols":["ASC","DESC"]}'
ITEM = record(field_of("sort", "Order"), name="Item", namespace="shop")
ORDERS = record(field_of("first", "Item"), name="Order", namespace="shop")
ORDERS_ALONE = (
    '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"first","type":'
    '{"type":"record","name":"Item","fields":[{"name":"sort","type":'
    '{"type":"enum","name":"Order","namespace":"","symbols":["ASC","DESC"]}}]}}]}'
)
ORDERS_RECURSIVE = (
    '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"first","type":'
    '{"type":"record","name":"Item","fields":[{"name":"sort","type":"Order"}]}}]}'
)


def deep(name: str, inner: str) -> str:
    """A record with a type in many nested arrays."""
    kind: Any = inner
    for _ in range(60):
        kind = {"type": "array", "items": kind}
    return record(field_of("a", kind), name=name)


SCENARIOS = [
    scenario(
        "a name with a namespace and without one is two types",
        register("order", ORDER, (1, 1)),
        register("item", ITEM, (2, 1), references=[to("order", name="Order")]),
        register("orders", ORDERS, (3, 1), references=[to("item", name="Item")]),
        ok("GET /subjects/orders/versions/1?format=resolved", {"schema": ORDERS_ALONE}),
        ok("PUT /config/orders", body={"compatibility": "NONE"}),
        register("orders", ORDERS_ALONE, (3, 1)),
        register("orders", ORDERS_RECURSIVE, (4, 2)),
    ),
    scenario(
        "an ambiguous name is refused",
        register("order", ORDER, (1, 1)),
        register("item", ITEM, (2, 1), references=[to("order", name="Order")]),
        unregistrable(
            "tree",
            ORDERS_RECURSIVE,
            42201,
            "Invalid schema of type AVRO, details: a name would mean both shop.Order and Order, "
            "which Avro cannot tell apart here at /fields/first/type/fields/sort/type",
            references=[to("order", name="Order")],
        ),
    ),
    scenario(
        "one version under two names",
        *FILLED,
        register(
            "both",
            WHOLE.replace("Whole", "Both"),
            (3, 1),
            references=[to("part", name="a"), to("part", name="b")],
        ),
        register("again", WHOLE, (2, 1), references=[to("part")]),
    ),
    scenario(
        "the depth limit is over all schemas together",
        register("d0", deep("D0", "int"), (1, 1)),
        unregistrable(
            "d1",
            deep("D1", "D0"),
            42201,
            "Invalid schema of type AVRO, details: types are nested more than 64 deep, "
            "with those of the schemas used at /",
            references=[to("d0", name="D0")],
        ),
    ),
    scenario(
        "a schema with a reference",
        *FILLED,
        ok("GET /subjects/whole/versions/1", {"schema": WHOLE, "references": [to("part")]}),
        ok("GET /schemas/ids/2", {"schema": WHOLE, "references": [to("part")]}),
        ok("GET /schemas/ids/2?format=resolved", {"schema": WRITTEN_OUT}),
        ok("GET /schemas/ids/2/schema?format=RESOLVED", Raw(WRITTEN_OUT)),
        ok("GET /schemas/ids/2/schema?format=unknown", Raw(WHOLE)),
        ok("GET /subjects/whole/versions/1/schema?format=resolved", Raw(WRITTEN_OUT)),
        ok(
            "POST /subjects/again/versions?format=resolved",
            {"id": 2, "version": 1, "schema": WRITTEN_OUT},
            body={"schema": WHOLE, "references": [to("part")]},
        ),
        ok(
            "POST /subjects/new/versions?format=resolved",
            {"id": 3, "schema": WRITTEN_OUT.replace("Whole", "New")},
            body={"schema": WHOLE.replace("Whole", "New"), "references": [to("part")]},
        ),
    ),
    scenario(
        "the resolved schema is the same schema",
        *FILLED,
        register("whole", WRITTEN_OUT, (2, 1)),
        ok("POST /subjects/whole", {"version": 1, "id": 2}, body={"schema": WRITTEN_OUT}),
    ),
    scenario(
        "latest is resolved at registration",
        *FILLED,
        register(
            "latest",
            WHOLE,
            {"references": [to("part")]},
            references=[to("part", -1)],
        ),
    ),
    scenario(
        "transitive",
        *FILLED,
        register("box", BOX, (3, 1), references=[to("whole", name="Whole")]),
        ok("GET /subjects/part/versions/1/referencedby", [2]),
        ok("GET /subjects/whole/versions/latest/referencedby", [3]),
        ok("GET /subjects/box/versions/1/referencedby", []),
    ),
    scenario(
        "referencing schemas of a version",
        register("part", PART, (1, 1)),
        *(
            register(
                f"u{n}", record(field_of("p", "n.Part"), name=f"U{n}"), references=[to("part")]
            )
            for n in range(3)
        ),
        ok("GET /subjects/part/versions/1/referencedby", [2, 3, 4]),
        ok("GET /subjects/part/versions/1/referencedby?offset=1&limit=1", [3]),
        ok("DELETE /subjects/u1", [1]),
        ok("GET /subjects/part/versions/1/referencedby", [2, 4]),
        ok("GET /subjects/part/versions/1/referencedby?deleted=true", [2, 3, 4]),
        refused("GET /subjects/part/versions/2/referencedby", 40402, "Version 2 not found."),
        refused("GET /subjects/none/versions/1/referencedby", 40401, "Subject 'none' not found."),
        refused("GET /subjects/part/versions/x/referencedby", 42202),
    ),
    scenario(
        "to missing versions",
        register("part", PART, (1, 1)),
        bad(to("none"), 42201, f'{NONE_FOUND}"none" and version 1'),
        bad(to("part", 2), 42201, f'{NONE_FOUND}"part" and version 2'),
        bad(to("none", -1), 42201, f'{NONE_FOUND}"none" and version -1'),
        bad({}, 42201, StartsWith("Invalid schema of type AVRO, details: ")),
        bad(
            {**to("part"), "name": ""}, 42201, StartsWith("Invalid schema of type AVRO, details: ")
        ),
        bad({**to("part"), "version": None}, 42201, StartsWith("Invalid schema of type AVRO")),
        bad({**to("part"), "version": "x"}, 400, "version is not a whole number of 32 bits"),
        bad({**to("part"), "name": [[]]}, 400, StartsWith("")),
        bad("part", 400, StartsWith("")),
        unregistrable("whole", WHOLE, 400, references={}),
        unregistrable("whole", WHOLE, 42201, StartsWith("Invalid schema of type AVRO, details: ")),
    ),
    scenario(
        "to deleted versions: refused for a new schema",
        *FILLED,
        ok("DELETE /subjects/whole", [1]),
        ok("DELETE /subjects/part", [1]),
        bad(to("part"), 42201, f'{NONE_FOUND}"part" and version 1'),
        ok(
            "POST /subjects/whole?deleted=true",
            {"version": 1},
            body={"schema": WHOLE, "references": [to("part")]},
        ),
        ok("GET /schemas/ids/2?format=resolved", {"schema": WRITTEN_OUT}),
    ),
    scenario(
        "to deleted versions: accepted for a new schema without validation",
        register("part", PART, (1, 1)),
        ok("DELETE /subjects/part", [1]),
        UNFIT,
        ok("PUT /config/whole", body={"validateNewSchemas": False}),
        FIT,
        register("whole", WHOLE, (2, 1), references=[to("part")]),
        bad(to("part", 2), 42201, f'{NONE_FOUND}"part" and version 2'),
    ),
    scenario(
        "unused ones are stored; of duplicate names the first is used",
        *FILLED,
        register("x", '"int"', {"references": [to("part")]}, references=[to("part")]),
        register("y", WHOLE, references=[to("part"), to("whole")]),
    ),
    scenario(
        "in the context of the schema unless another is named",
        register(":.c:part", PART, (1, 1)),
        register(":.c:whole", WHOLE, {"references": [to("part")]}, references=[to("part")]),
        ok(
            "GET /subjects/:.c:whole/versions/1?referenceFormat=qualified",
            {"references": [to(":.c:part")]},
        ),
        unregistrable("whole", WHOLE, 42201, references=[to("part")]),
        register("whole", WHOLE, (1, 1), references=[to(":.c:part")]),
        ok("GET /subjects/:.c:part/versions/1/referencedby", [1, 2]),
    ),
]
