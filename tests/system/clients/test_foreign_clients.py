"""Confluent's unmodified clients for Node and Go against Medusa's registry."""

import uuid
from typing import Any

import pytest

from tests.conformance.registry.scenario import field_of, record
from tests.system.clients.conftest import PASSWORD, StartClient
from tests.system.clients.foreign import Foreign, Served
from tests.system.clients.installing import Program

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(900),
    pytest.mark.second_tier("in other languages; tests/conformance sends the same requests"),
]

CAR = record(field_of("id", "long"))
CAR_2 = record(field_of("id", "long"), field_of("kind", "string", default="car"))
BAD = record(field_of("id", "string"))
WHEEL = record(field_of("inch"), name="Wheel", namespace="parts")
CART = record(field_of("wheel", "parts.Wheel"), name="Cart")
CARS = "cars-value"
UNKNOWN_GUID = str(uuid.UUID(int=0))


def test_a_schema_is_registered_and_found(client: Foreign) -> None:
    """By text, id, GUID, version and as the latest one; registration is idempotent."""
    assert client.request("subjects") == []
    first = client.request("register", subject=CARS, schema=CAR)
    second = client.request("register", subject=CARS, schema=CAR_2)
    assert (first["id"], first["version"], first["schema"]) == (1, 1, CAR)
    assert (second["id"], second["version"], second["schema"]) == (2, 2, CAR_2)
    assert str(uuid.UUID(first["guid"])) == first["guid"] != second["guid"]
    assert client.request("register", subject=CARS, schema=CAR) == first
    assert client.request("lookup", subject=CARS, schema=CAR) == first
    assert client.request("version", subject=CARS, version=1, deleted=False) == first
    assert client.request("latest", subject=CARS) == second
    content = {"schema": CAR_2, "references": []}
    assert client.request("schema_by_id", subject=CARS, id=2) == content
    assert client.request("schema_by_id", subject="", id=2) == content
    assert client.request("schema_by_guid", guid=second["guid"]) == content
    assert client.request("versions", subject=CARS) == [1, 2]
    assert client.request("subjects") == [CARS]


def test_an_incompatible_schema_is_refused(client: Foreign) -> None:
    """A check returns a boolean, a registration the reason; level NONE accepts all."""
    client.request("register", subject=CARS, schema=CAR)
    assert client.request("compatible", subject=CARS, schema=CAR_2) is True
    assert client.request("compatible", subject=CARS, schema=BAD) is False
    assert client.request("compatible_with", subject=CARS, version=1, schema=BAD) is False
    assert client.request("compatible", subject="new", schema=BAD) is True
    refused = client.refused("register", subject=CARS, schema=BAD)
    assert refused.code == 40901
    for word in (CARS, "TYPE_MISMATCH", "path '/fields/0/type'", "{oldSchemaVersion: 1}"):
        assert word in refused.message
    assert client.request("versions", subject=CARS) == [1]
    client.request("set_level", subject=CARS, level="NONE")
    assert client.request("compatible", subject=CARS, schema=BAD) is True
    assert client.request("register", subject=CARS, schema=BAD)["version"] == 2


def test_compatibility_levels_and_configurations(client: Foreign) -> None:
    """The global level, a subject's level, and the other settings of a configuration."""
    assert client.request("general_level") == "BACKWARD"
    assert client.request("set_general_level", level="FULL_TRANSITIVE") == "FULL_TRANSITIVE"
    assert client.request("general_level") == "FULL_TRANSITIVE"
    assert client.refusal("level", subject=CARS) == 40408
    assert client.request("set_level", subject=CARS, level="FORWARD") == "FORWARD"
    assert client.request("level", subject=CARS) == "FORWARD"
    rest = {"normalize": True, "compatibilityGroup": "major", "alias": "autos-value"}
    result = client.request("set_config", subject=CARS, config={"compatibility": "FULL", **rest})
    assert result == {"compatibility": "FULL", **rest}
    assert client.request("config", subject=CARS) == {"compatibilityLevel": "FULL", **rest}


def test_soft_and_permanent_deletion(client: Foreign) -> None:
    """Soft-deleted versions are returned on request, until they are permanently deleted."""
    for schema in (CAR, CAR_2):
        client.request("register", subject=CARS, schema=schema)
    one = {"subject": CARS, "version": 1}
    assert client.refusal("delete_version", **one, permanent=True) == 40407
    assert client.request("delete_version", **one, permanent=False) == 1
    assert client.request("versions", subject=CARS) == [2]
    assert client.refusal("version", **one, deleted=False) == 40402
    assert client.request("version", **one, deleted=True)["schema"] == CAR
    assert client.request("delete_version", **one, permanent=True) == 1
    assert client.refusal("version", **one, deleted=True) == 40402
    assert client.refusal("delete_subject", subject=CARS, permanent=True) == 40405
    assert client.request("delete_subject", subject=CARS, permanent=False) == [2]
    assert client.refusal("versions", subject=CARS) == 40401
    assert client.refusal("delete_subject", subject=CARS, permanent=False) == 40404
    assert client.request("delete_subject", subject=CARS, permanent=True) == [2]
    assert client.request("subjects") == []


def test_missing_items_have_error_codes(client: Foreign) -> None:
    """Each kind of missing item has its own code."""
    client.request("register", subject=CARS, schema=CAR)
    for code, call, result in (
        (40401, "latest", {"subject": "no"}),
        (40401, "versions", {"subject": "no"}),
        (40401, "lookup", {"subject": "no", "schema": CAR}),
        (40401, "delete_subject", {"subject": "no", "permanent": False}),
        (40402, "version", {"subject": CARS, "version": 9, "deleted": False}),
        (40403, "lookup", {"subject": CARS, "schema": CAR_2}),
        (40403, "schema_by_id", {"subject": CARS, "id": 99}),
        (40403, "schema_by_guid", {"guid": UNKNOWN_GUID}),
        (42201, "register", {"subject": CARS, "schema": '{"type":"nonsense"}'}),
    ):
        assert (call, client.refusal(call, **result)) == (call, code)


@pytest.mark.parametrize("subject", ["a/b c%2Få-value", ":.lab:cars-value"])
def test_special_characters_in_subject_names(client: Foreign, subject: str) -> None:
    """With any characters and in a context: the client escapes, the registry decodes."""
    result = client.request("register", subject=subject, schema=CAR)
    assert client.request("latest", subject=subject) == result
    assert client.request("schema_by_id", subject=subject, id=result["id"])["schema"] == CAR
    assert client.request("set_level", subject=subject, level="FULL") == "FULL"
    assert client.request("level", subject=subject) == "FULL"
    assert client.request("subjects") == [subject]
    assert client.request("delete_subject", subject=subject, permanent=False) == [1]


def test_a_schema_with_references(client: Foreign) -> None:
    """A schema with a reference to another one is returned with its references."""
    client.request("register", subject="wheel", schema=WHEEL)
    references = [{"name": "parts.Wheel", "subject": "wheel", "version": 1}]
    cart: dict[str, Any] = {"schema": CART, "references": references}
    result = client.request("register", subject="cart-value", **cart)
    assert client.request("schema_by_id", subject="cart-value", id=result["id"]) == cart
    assert client.request("lookup", subject="cart-value", **cart) == result
    assert client.refusal("delete_subject", subject="wheel", permanent=False) == 42206


def test_authentication_and_authorization_errors(
    program: Program, with_logins: Served, start: StartClient
) -> None:
    """No login, a wrong password, and a write by a reader have different codes."""
    for user, password, code in (
        ("", "", 401),
        ("owner", "wrong", 401),
        ("guest", PASSWORD, 40301),
    ):
        served = Served(with_logins.url, user, password)
        assert start(program, served).refusal("register", subject=CARS, schema=CAR) == code
    owner = start(program, with_logins)
    for subject in (CARS, "boats-value"):
        owner.request("register", subject=subject, schema=CAR)
    guest = start(program, Served(with_logins.url, "guest", PASSWORD))
    assert guest.request("subjects") == [CARS]
    assert guest.request("latest", subject=CARS)["schema"] == CAR
