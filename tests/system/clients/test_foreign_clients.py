"""Confluent's clients for Node and Go, as they come, against our registry."""

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
NOBODY = str(uuid.UUID(int=0))


def test_a_schema_is_registered_and_found(client: Foreign) -> None:
    """By its text, id and GUID, as a version and as the latest one; again it is the same."""
    assert client.ask("subjects") == []
    first = client.ask("register", subject=CARS, schema=CAR)
    second = client.ask("register", subject=CARS, schema=CAR_2)
    assert (first["id"], first["version"], first["schema"]) == (1, 1, CAR)
    assert (second["id"], second["version"], second["schema"]) == (2, 2, CAR_2)
    assert str(uuid.UUID(first["guid"])) == first["guid"] != second["guid"]
    assert client.ask("register", subject=CARS, schema=CAR) == first
    assert client.ask("lookup", subject=CARS, schema=CAR) == first
    assert client.ask("version", subject=CARS, version=1, deleted=False) == first
    assert client.ask("latest", subject=CARS) == second
    content = {"schema": CAR_2, "references": []}
    assert client.ask("schema_by_id", subject=CARS, id=2) == content
    assert client.ask("schema_by_id", subject="", id=2) == content
    assert client.ask("schema_by_guid", guid=second["guid"]) == content
    assert client.ask("versions", subject=CARS) == [1, 2]
    assert client.ask("subjects") == [CARS]


def test_what_does_not_fit_is_refused(client: Foreign) -> None:
    """A check says yes or no, a registration why; under NONE everything fits."""
    client.ask("register", subject=CARS, schema=CAR)
    assert client.ask("compatible", subject=CARS, schema=CAR_2) is True
    assert client.ask("compatible", subject=CARS, schema=BAD) is False
    assert client.ask("compatible_with", subject=CARS, version=1, schema=BAD) is False
    assert client.ask("compatible", subject="new", schema=BAD) is True
    refused = client.refused("register", subject=CARS, schema=BAD)
    assert refused.code == 40901
    for word in (CARS, "TYPE_MISMATCH", "path '/fields/0/type'", "{oldSchemaVersion: 1}"):
        assert word in refused.message
    assert client.ask("versions", subject=CARS) == [1]
    client.ask("set_level", subject=CARS, level="NONE")
    assert client.ask("compatible", subject=CARS, schema=BAD) is True
    assert client.ask("register", subject=CARS, schema=BAD)["version"] == 2


def test_levels_and_configurations(client: Foreign) -> None:
    """The general level, a subject's own one, and whatever else a configuration says."""
    assert client.ask("general_level") == "BACKWARD"
    assert client.ask("set_general_level", level="FULL_TRANSITIVE") == "FULL_TRANSITIVE"
    assert client.ask("general_level") == "FULL_TRANSITIVE"
    assert client.refusal("level", subject=CARS) == 40408
    assert client.ask("set_level", subject=CARS, level="FORWARD") == "FORWARD"
    assert client.ask("level", subject=CARS) == "FORWARD"
    rest = {"normalize": True, "compatibilityGroup": "major", "alias": "autos-value"}
    told = client.ask("set_config", subject=CARS, config={"compatibility": "FULL", **rest})
    assert told == {"compatibility": "FULL", **rest}
    assert client.ask("config", subject=CARS) == {"compatibilityLevel": "FULL", **rest}


def test_deletion_in_two_stages(client: Foreign) -> None:
    """What is deleted is still found by those who ask for it, until it is deleted for good."""
    for schema in (CAR, CAR_2):
        client.ask("register", subject=CARS, schema=schema)
    one = {"subject": CARS, "version": 1}
    assert client.refusal("delete_version", **one, permanent=True) == 40407
    assert client.ask("delete_version", **one, permanent=False) == 1
    assert client.ask("versions", subject=CARS) == [2]
    assert client.refusal("version", **one, deleted=False) == 40402
    assert client.ask("version", **one, deleted=True)["schema"] == CAR
    assert client.ask("delete_version", **one, permanent=True) == 1
    assert client.refusal("version", **one, deleted=True) == 40402
    assert client.refusal("delete_subject", subject=CARS, permanent=True) == 40405
    assert client.ask("delete_subject", subject=CARS, permanent=False) == [2]
    assert client.refusal("versions", subject=CARS) == 40401
    assert client.refusal("delete_subject", subject=CARS, permanent=False) == 40404
    assert client.ask("delete_subject", subject=CARS, permanent=True) == [2]
    assert client.ask("subjects") == []


def test_what_is_not_there(client: Foreign) -> None:
    """Each thing that is missing has its code."""
    client.ask("register", subject=CARS, schema=CAR)
    for code, call, told in (
        (40401, "latest", {"subject": "no"}),
        (40401, "versions", {"subject": "no"}),
        (40401, "lookup", {"subject": "no", "schema": CAR}),
        (40401, "delete_subject", {"subject": "no", "permanent": False}),
        (40402, "version", {"subject": CARS, "version": 9, "deleted": False}),
        (40403, "lookup", {"subject": CARS, "schema": CAR_2}),
        (40403, "schema_by_id", {"subject": CARS, "id": 99}),
        (40403, "schema_by_guid", {"guid": NOBODY}),
        (42201, "register", {"subject": CARS, "schema": '{"type":"nonsense"}'}),
    ):
        assert (call, client.refusal(call, **told)) == (call, code)


@pytest.mark.parametrize("subject", ["a/b c%2Få-value", ":.lab:cars-value"])
def test_names_of_subjects(client: Foreign, subject: str) -> None:
    """Whatever a name holds, and in a context: the client escapes it, the registry reads it."""
    told = client.ask("register", subject=subject, schema=CAR)
    assert client.ask("latest", subject=subject) == told
    assert client.ask("schema_by_id", subject=subject, id=told["id"])["schema"] == CAR
    assert client.ask("set_level", subject=subject, level="FULL") == "FULL"
    assert client.ask("level", subject=subject) == "FULL"
    assert client.ask("subjects") == [subject]
    assert client.ask("delete_subject", subject=subject, permanent=False) == [1]


def test_references(client: Foreign) -> None:
    """A schema that refers to another one comes back with what it refers to."""
    client.ask("register", subject="wheel", schema=WHEEL)
    references = [{"name": "parts.Wheel", "subject": "wheel", "version": 1}]
    cart: dict[str, Any] = {"schema": CART, "references": references}
    told = client.ask("register", subject="cart-value", **cart)
    assert client.ask("schema_by_id", subject="cart-value", id=told["id"]) == cart
    assert client.ask("lookup", subject="cart-value", **cart) == told
    assert client.refusal("delete_subject", subject="wheel", permanent=False) == 42206


def test_who_may_not(program: Program, with_logins: Served, start: StartClient) -> None:
    """Nobody, a wrong password, and a reader who writes are told apart."""
    for user, password, code in (
        ("", "", 401),
        ("owner", "wrong", 401),
        ("guest", PASSWORD, 40301),
    ):
        served = Served(with_logins.url, user, password)
        assert start(program, served).refusal("register", subject=CARS, schema=CAR) == code
    owner = start(program, with_logins)
    for subject in (CARS, "boats-value"):
        owner.ask("register", subject=subject, schema=CAR)
    guest = start(program, Served(with_logins.url, "guest", PASSWORD))
    assert guest.ask("subjects") == [CARS]
    assert guest.ask("latest", subject=CARS)["schema"] == CAR
