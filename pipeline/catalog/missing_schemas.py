"""Ids and GUIDs that the registry does not contain, so that their records stay undecodable."""

from contextlib import suppress
from dataclasses import dataclass

from brokers.versioned_store import Create, Delete, NoSuchPathError, PathExistsError
from pipeline.catalog.codec import encode
from pipeline.catalog.record_store import RecordStore
from pipeline.catalog.records import MissingGuidRecord, MissingSchemaRecord
from pipeline.ids import SchemaGuid, SchemaHandle, SchemaId


@dataclass(frozen=True, slots=True)
class MissingSchemas:
    """The ids and GUIDs of missing schemas. Every method is idempotent."""

    records: RecordStore

    def all(self) -> frozenset[SchemaHandle]:
        """All ids and GUIDs for which the registry returned no schema; one request."""
        znodes = self.records.znodes
        ids, guids = self.records.store.children_all(
            (znodes.missing_schemas(), znodes.missing_guids())
        )
        return frozenset((*(SchemaId(int(name)) for name in ids), *map(SchemaGuid, guids)))

    def record(self, schema: SchemaHandle) -> None:
        """Record that the registry returned no such schema."""
        path = self.records.znodes.missing_schema(schema)
        record: MissingSchemaRecord | MissingGuidRecord
        if isinstance(schema, int):
            record = MissingSchemaRecord(schema)
        else:
            record = MissingGuidRecord(schema)
        with suppress(PathExistsError):
            self.records.store.apply((Create(path, encode(record)),))

    def forget(self, schema: SchemaHandle) -> None:
        """Remove a schema that has been registered since."""
        with suppress(NoSuchPathError):
            self.records.store.apply((Delete(self.records.znodes.missing_schema(schema), None),))
