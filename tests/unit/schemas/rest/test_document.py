"""The OpenAPI document describes exactly the served interface."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from schemas.compatibility import Level
from schemas.registry import refused
from schemas.registry.config import Config, Mode, changed, config_json
from schemas.registry.metadata import Metadata
from schemas.registry.prepare import Sent
from schemas.registry.refused import NoAssociationError, RegistryRefusal
from schemas.rest.about import INTERFACE_VERSION
from schemas.rest.call import Call
from schemas.rest.errors import MEDIA_TYPE
from schemas.rest.reading import media_of
from schemas.rest.routes import ROUTES, Right, Route
from tests.unit.schemas.registry.making import STRING, RegistryValue

DOCUMENT: Final[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[4] / "docs" / "reference" / "registry-openapi.yaml").read_text("utf-8")
)
COMPONENTS: Final[dict[str, Any]] = DOCUMENT["components"]
ALWAYS: Final = {"400", "401", "406", "500", "503"}
WITH_BODY: Final = {"408", "413", "415", "422"}
PATH: Final = {
    "subject": "s",
    "version": "1",
    "id": "1",
    "context": ".none",
    "namespace": "-",
    "resource": "x",
}
CONFIG: Final[dict[str, Any]] = {
    "alias": "a",
    "normalize": True,
    "validateFields": True,
    "validateNewSchemas": True,
    "validateRules": True,
    "compatibility": "FULL",
    "compatibilityPolicy": "STRICT",
    "compatibilityGroup": "g",
    "defaultMetadata": {},
    "overrideMetadata": {},
    "defaultRuleSet": {},
    "overrideRuleSet": {},
}


@dataclass(frozen=True, slots=True)
class Recorded(Call):
    """A call that records the parameters read from it."""

    asked: set[str] = field(default_factory=set)

    def texts(self, name: str) -> list[str]:
        """All values of a name in the query."""
        self.asked.add(name)
        return Call.texts(self, name)


def _operation(route: Route) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][f"/{'/'.join(route.parts)}"][route.method.lower()]
    return found


def _operations() -> Iterator[tuple[str, str]]:
    for path, methods in DOCUMENT["paths"].items():
        for method in methods.keys() - {"servers"}:
            yield method.upper(), path


def _parameters(route: Route, place: str) -> list[str]:
    refs = (one["$ref"].rpartition("/")[2] for one in _operation(route).get("parameters", ()))
    listed = (COMPONENTS["parameters"][ref] for ref in refs)
    return [one["name"] for one in listed if one["in"] == place]


def test_every_route_is_described_and_nothing_else() -> None:
    """Each method of each path."""
    assert set(_operations()) == {(r.method, f"/{'/'.join(r.parts)}") for r in ROUTES}
    names = [_operation(route)["operationId"] for route in ROUTES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("route", ROUTES, ids=lambda r: f"{r.method} /{'/'.join(r.parts)}")
def test_the_description_of_a_route_is_complete(route: Route) -> None:
    """The names in its path, its body, and the responses of its kind."""
    operation = _operation(route)
    assert _parameters(route, "path") == [p[1:-1] for p in route.parts if p.startswith("{")]
    assert ("requestBody" in operation) == route.takes_body
    statuses = set(operation["responses"])
    assert statuses >= ALWAYS
    assert ("403" in statuses) == (route.right is not Right.NONE)
    assert not route.takes_body or statuses >= WITH_BODY
    assert {"description", "summary"} & operation.keys()


@pytest.mark.parametrize("route", ROUTES, ids=lambda r: f"{r.method} /{'/'.join(r.parts)}")
def test_query_parameters_are_described(route: Route) -> None:
    """Each name that the handler reads, and no other."""
    registry = RegistryValue()
    guid = registry.register("s", Sent(STRING, metadata=Metadata())).version.guid
    registry.configure("s", compatibility="NONE")
    registry.mode("s", Mode.READWRITE)
    body = {"schema": STRING, "mode": "READWRITE"}
    call = Recorded({**PATH, "guid": guid}, (), body)
    try:
        route.handler(registry.state, call)
    except NoAssociationError:
        assert route.parts[0] == "associations"
    assert sorted(_parameters(route, "query")) == sorted(call.asked)


def test_every_code_of_a_refusal_is_described() -> None:
    """Under its status."""
    kinds = [one for one in vars(refused).values() if isinstance(one, type)]
    numbers = {one.number for one in kinds if issubclass(one, RegistryRefusal)} - {422, 400}
    places = {404: "NotFound", 409: "Incompatible", 422: "Refused"}
    assert len(numbers) > 15
    for number in numbers:
        assert str(number) in COMPONENTS["responses"][places[number // 100]]["description"]


def test_enumerations_are_those_of_the_code() -> None:
    """Levels, modes, configuration fields, media types, and the version of the interface."""
    schemas = COMPONENTS["schemas"]
    assert DOCUMENT["info"]["version"] == INTERFACE_VERSION
    assert set(schemas["ModeChange"]["properties"]["mode"]["enum"]) == {
        *(m.value for m in Mode),
        None,
    }
    levels = {level.value for level in Level}
    assert set(schemas["Config"]["properties"]["compatibilityLevel"]["enum"]) == levels
    full = changed(Config(), CONFIG)
    assert list(schemas["Config"]["properties"]) == list(config_json(full))
    assert list(schemas["ConfigChange"]["properties"]) == list(CONFIG)
    for answer in COMPONENTS["responses"].values():
        produced = list(answer.get("content", (MEDIA_TYPE,)))
        assert produced[0] == MEDIA_TYPE
        assert [media_of(one) for one in produced] == produced


def test_required_properties_are_described() -> None:
    """A required name without a type would allow any value."""

    def objects(part: Any) -> Iterator[dict[str, Any]]:
        if isinstance(part, dict | list):
            for one in part.values() if isinstance(part, dict) else part:
                yield from objects(one)
        if isinstance(part, dict) and "required" in part and "properties" in part:
            yield part

    found = list(objects(COMPONENTS))
    assert len(found) > 10
    assert not [one for one in found if not set(one["required"]) <= set(one["properties"])]
