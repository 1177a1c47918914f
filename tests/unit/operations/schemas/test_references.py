from typing import Any

import pytest

from pipeline.errors import SchemaError, UsageError
from pipeline.operations.schemas.references import ReadSchema, TypeReference, read_schema
from schemas.registry.content import Reference
from tests.unit.deploy.twins import TwinRegistry

CART = '{"type":"record","name":"Cart","fields":[{"name":"front","type":"parts.Wheel"}]}'


def _read(registry: TwinRegistry, *wanted: TypeReference) -> ReadSchema:
    client: Any = registry
    return read_schema(CART, wanted, "cart.avsc", client, "carts")


def test_a_schema_is_read_with_the_types_of_other_subjects(registry: TwinRegistry) -> None:
    """By the number of a version, whatever was asked for; without a name it is the version's."""
    found = _read(registry, TypeReference("", "wheels", "latest"))
    assert found.references == (Reference("parts.Wheel", "wheels", 2),)
    assert "inch" in found.alone.text


def test_a_type_comes_from_a_version_that_defines_it_and_from_one_place(
    registry: TwinRegistry,
) -> None:
    """The types that there are, and the places, are named."""
    with pytest.raises(SchemaError, match=r"it does not define parts\.Axle") as missing:
        _read(registry, TypeReference("parts.Axle", "wheels", 1))
    assert "parts.Wheel" in missing.value.hint
    with pytest.raises(UsageError, match="wheels version 1 and wheels version 2"):
        _read(registry, TypeReference("", "wheels", 1), TypeReference("", "wheels", 2))
