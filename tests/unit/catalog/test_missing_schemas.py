"""Ids and GUIDs that the registry does not contain."""

from pipeline.ids import SchemaGuid, SchemaId
from tests.memory_store import MemoryTree
from tests.unit.catalog.support import ME, session

GUID = SchemaGuid("095d71cf-1255-6b9d-5e33-0ad575b3df5d")


def test_missing_schemas_are_recorded() -> None:
    """Recording an id or GUID is idempotent."""
    _, catalog = session(MemoryTree())
    catalog.format.ensure(ME)
    assert catalog.missing_schemas.all() == frozenset()
    for schema in (SchemaId(7), SchemaId(2_000_000_000), GUID, SchemaId(7), GUID):
        catalog.missing_schemas.record(schema)
    assert catalog.missing_schemas.all() == {7, 2_000_000_000, GUID}


def test_a_schema_registered_since_is_removed() -> None:
    """Removing it is idempotent; the others stay."""
    _, catalog = session(MemoryTree())
    catalog.format.ensure(ME)
    for schema in (SchemaId(3), SchemaId(4), GUID):
        catalog.missing_schemas.record(schema)
    for _ in range(2):
        catalog.missing_schemas.forget(SchemaId(3))
        catalog.missing_schemas.forget(GUID)
    assert catalog.missing_schemas.all() == {4}
