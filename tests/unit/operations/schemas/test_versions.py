from typing import Any

import pytest

from pipeline.errors import InputError, SchemaError
from pipeline.operations.schemas.versions import before, fetch, require_versions
from tests.unit.deploy.twins import TwinRegistry


def test_a_version_is_found_by_its_number_or_as_the_newest(registry: TwinRegistry) -> None:
    """And so is the one before it."""
    admin: Any = registry.admin
    assert require_versions(admin, "wheels") == (1, 2)
    assert [fetch(admin, "wheels", one).version for one in (1, "latest")] == [1, 2]
    assert before(admin, "wheels", 2) == 1


def test_what_the_registry_does_not_have_is_an_error_with_what_it_has(
    registry: TwinRegistry,
) -> None:
    """Versions, or the names of similar subjects."""
    admin: Any = registry.admin
    with pytest.raises(SchemaError, match="does not have version 3") as missing:
        fetch(admin, "wheels", 3)
    assert missing.value.hint == "it has 1, 2."
    with pytest.raises(SchemaError, match="does not have the subject") as unknown:
        fetch(admin, "whels")
    assert unknown.value.hint == "it has wheels."
    with pytest.raises(InputError, match="no version before 1"):
        before(admin, "wheels", 1)
