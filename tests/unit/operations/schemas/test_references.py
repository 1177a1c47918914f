from typing import Any

import pytest

from pipeline.errors import SchemaError, UsageError
from pipeline.operations.schemas.references import ReadSchema, TypeReference, read_schema
from schemas.registry.content import Reference
from tests.unit.deploy.twins import TwinRegistry

CART = '{"type":"record","name":"Cart","fields":[{"name":"front","type":"parts.Wheel"}]}'


def _read(registry: TwinRegistry, *types: TypeReference) -> ReadSchema:
    client: Any = registry
    return read_schema(CART, types, "cart.avsc", client, "carts")


def test_a_schema_is_read_with_the_types_of_other_subjects(registry: TwinRegistry) -> None:
    """The reference has the version's number, and without a given name the version's own."""
    found = _read(registry, TypeReference("", "wheels", "latest"))
    assert found.references == (Reference("parts.Wheel", "wheels", 2),)
    assert "inch" in found.resolved.text


def test_a_type_comes_from_a_version_that_defines_it_and_from_one_place(
    registry: TwinRegistry,
) -> None:
    """The errors list the types, and the places."""
    with pytest.raises(SchemaError, match=r"it does not define parts\.Axle") as missing:
        _read(registry, TypeReference("parts.Axle", "wheels", 1))
    assert "parts.Wheel" in missing.value.hint
    with pytest.raises(UsageError, match="wheels version 1 and wheels version 2"):
        _read(registry, TypeReference("", "wheels", 1), TypeReference("", "wheels", 2))
