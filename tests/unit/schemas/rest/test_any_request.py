"""Random sequences of requests: no response is an internal error."""

import json
import random
from typing import Any
from urllib.parse import quote

import pytest

from pipeline.names import Znodes
from schemas.registry.registry import Registry
from schemas.rest.routes import ROUTES
from tests.conformance.registry.scenario import INT, STRING, field_of, record
from tests.unit.schemas.rest.running import Service

REQUESTS = 400
SUBJECTS = (
    *("s", "s", "t", ":.c:s", ":.c:t", ":.c:", ":.c", ":.:", ":.:s", ":*:", ":*:s", "*", "::"),
    *("__GLOBAL", ":.__GLOBAL:", "a/b", "subjects", "\0", "\u20ac", "%"),
)
NUMBERS = ("1", "2", "3", "-1", "0", "latest", "x", "2147483647", "-2147483648", " 1")
SCHEMAS = (
    *(STRING, INT, record(field_of("a")), record(field_of("a"), field_of("b", default=0))),
    *("{", "", '["null","int"]', record(field_of("x", "R"), name="S"), record(name="n.P")),
)
TAGS = tuple(
    [{"schemaEntity": {"entityPath": path, "entityType": kind}, "tags": ["x"]}]
    for path in ("R", "n.P", "R.a", "S.x", "", ".", "..")
    for kind in ("sr_record", "sr_field")
)
CHOICES: dict[str, tuple[Any, ...]] = {
    "references": tuple(
        [{"name": name, "subject": subject, "version": version}]
        for name in ("R", "n.P", "")
        for subject in ("s", "t", ":.c:s", "*")
        for version in (1, 2, -1, 0, None)
    ),
    "compatibility": ("NONE", "full", "FORWARD_TRANSITIVE", None),
    "mode": ("READWRITE", "READWRITE", "IMPORT", "FORWARD", None),
    "id": (1, 2, 10, 0, -1, 2**31 - 1),
    "version": (1, 2, 10, 0, -1, 2**31 - 1),
    "alias": SUBJECTS,
    "metadata": tuple({"properties": {"confluent:version": one}} for one in ("1", "-1", "x", "")),
    "overrideMetadata": ({"properties": {"k": "v"}}, {"tags": {"R.a": ["x"]}}, {}),
    "defaultRuleSet": ({"domainRules": [{"name": "n", "type": "CEL"}]}, {}),
    "normalize": (True, False, None),
    "validateFields": (True, False, None),
    "validateNewSchemas": (True, False, None),
    "schemaTagsToAdd": TAGS,
    "schemaTagsToRemove": TAGS,
    "propagateSchemaTags": (True, False, None),
    "tagsToAdd": TAGS,
    "tagsToRemove": TAGS,
    "newVersion": (1, 2, 10, 0, -1, 2**31 - 1),
    "rulesToMerge": ({"domainRules": [{"name": "n", "type": "CEL"}]}, {}),
    "rulesToRemove": (["n"], []),
}
ODD: tuple[Any, ...] = (None, "", 0, True, [], {}, [1], [{}], {"a": 1}, 1.5, {"properties": None})
QUERIES = (
    *("deleted", "deletedOnly", "permanent", "normalize", "verbose", "latestOnly", "aliases"),
    *("force", "recursive", "defaultToGlobal", "fetchMaxId", "deletedAsNegative"),
)
MORE_QUERIES = (
    *("", "format=resolved", "referenceFormat=qualified", "key=k&value=v", "offset=-3&limit=5"),
    *("findTags=*", "findTags=x&findTags=", "format=resolved&findTags=x"),
    *("ruleType=all", "ruleType=domain", "limit=1", "subject=:.c:", "subjectPrefix=:*:"),
    *(f"{name}={quote(one)}" for name in ("subject", "subjectPrefix") for one in SUBJECTS),
)


def _target(chance: random.Random, parts: tuple[str, ...]) -> str:
    named = {
        "subject": chance.choice(SUBJECTS),
        "context": chance.choice(SUBJECTS),
        "version": chance.choice(NUMBERS),
        "id": chance.choice(NUMBERS),
        "guid": chance.choice(("x", "095d71cf-1255-6b9d-5e33-0ad575b3df5d")),
    }
    path = "/".join(quote(named.get(p[1:-1], "x"), safe=":") if p[0] == "{" else p for p in parts)
    context = chance.choice(("", "", "", "contexts/.c/", "contexts/.__GLOBAL/", "contexts/*/"))
    flags = [f"{name}={chance.choice(('true', 'no'))}" for name in chance.choices(QUERIES, k=2)]
    return f"/{context}{path}?{'&'.join((*flags, chance.choice(MORE_QUERIES)))}"


def _body(chance: random.Random) -> dict[str, Any]:
    some = chance.sample(sorted(CHOICES), chance.randint(0, 4))
    body = {name: chance.choice(CHOICES[name]) for name in some}
    body["schema"] = chance.choice(SCHEMAS)
    if chance.random() < 0.2:
        body[chance.choice(sorted(CHOICES))] = chance.choice(ODD)
    return body


@pytest.mark.parametrize("seed", range(3))
def test_any_request_is_answered(seed: int) -> None:
    """Requests of every route, drawn by chance: refused or not, the registry stays.

    And what the server knows at the end is what another one reads from the store.
    """
    chance = random.Random(seed)
    with Service() as service:
        for _ in range(REQUESTS):
            route = chance.choice(ROUTES)
            body = _body(chance) if route.takes_body else None
            target = _target(chance, route.parts)
            answer = service.http.request(route.method, target, json=body)
            what = f"{route.method} {target} {json.dumps(body)}: {answer.text}"
            assert answer.status_code < 500, what
        known = service.server._registry
        assert known is not None
        other = Registry(service.store, Znodes().registry())
        try:
            assert other.state() == known.state()
        finally:
            other.close()
