"""Which schemas the registry was found not to have, so that it stays so for their records."""

from contextlib import suppress

from brokers.versioned_store import (
    Create,
    Delete,
    NoSuchPathError,
    PathExistsError,
    VersionedStore,
)
from pipeline.catalog.codec import encode
from pipeline.catalog.records import MissingGuidRecord, MissingSchemaRecord
from pipeline.ids import SchemaGuid, SchemaHandle, SchemaId
from pipeline.names import Znodes


class MissingSchemas:
    """The list of them in the catalog. Doing a thing twice is harmless."""

    def __init__(self, store: VersionedStore, znodes: Znodes) -> None:
        self._store = store
        self._znodes = znodes

    def all(self) -> frozenset[SchemaHandle]:
        """Those for which the registry answered that there are none."""
        ids = self._store.children(self._znodes.missing_schemas())
        guids = self._store.children(self._znodes.missing_guids())
        return frozenset((*(SchemaId(int(name)) for name in ids), *map(SchemaGuid, guids)))

    def record(self, schema: SchemaHandle) -> None:
        """Keep that the registry answered that there is no such one."""
        path = self._znodes.missing_schema(schema)
        record: MissingSchemaRecord | MissingGuidRecord
        if isinstance(schema, int):
            record = MissingSchemaRecord(schema)
        else:
            record = MissingGuidRecord(schema)
        with suppress(PathExistsError):
            self._store.apply((Create(path, encode(record)),))

    def forget(self, schema: SchemaHandle) -> None:
        """The registry has this one by now."""
        with suppress(NoSuchPathError):
            self._store.apply((Delete(self._znodes.missing_schema(schema), None),))
