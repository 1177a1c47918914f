"""The sink `postgresql`: each batch is one transaction, with its rows and its marker.

Guarantee: exactly once. The marker is a row of the table `medusa_connectors`; its column `opened`
counts the runs. A transaction changes this row first, under the number of its run, so those of an
older run, which wait for the row or come later, find no row to change.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from connectors.catalogue import Context
from connectors.postgresql.changes import apply, folded
from connectors.postgresql.columns import as_json, check_key, columns_of, missing_key
from connectors.postgresql.database import Database, OpenDatabase, Statement
from connectors.postgresql.options import Table, options
from connectors.postgresql.statements import MARKERS, Statements
from connectors.sink import Batch, Change, Marker, Refuse, RefusedChange, Result
from pipeline.clock import Deadline
from pipeline.errors import BrokenInvariantError, FencedError, RefusedError, RetryError
from pipeline.formats import check
from pipeline.ids import ConnectorName, Offset, TopicId
from schemas.avro import AvroSchema
from schemas.json_value import JsonObject

FORMAT: Final = 1
"""Of the row of a marker."""
REFUSED: Final = "refused"
"""The reason of a dead letter."""


class PostgresqlSink:
    """Writes rows into a table; see the module.

    Args:
        connect: opens a connection.
        connector: whose marker it is.
        table: of the rows.
        by: the fields that make the key of a row; none: the id of the result.
        schema: of the rows.

    Raises:
        SchemaError: the table cannot have the columns of the schema.
    """

    def __init__(
        self,
        connect: OpenDatabase,
        connector: ConnectorName,
        table: Table,
        by: tuple[str, ...],
        schema: AvroSchema,
    ) -> None:
        self._connect = connect
        columns = columns_of(schema)
        check_key(by, columns)
        self._sql = Statements(table, columns, by)
        self._whose = {"connector": connector, "target": str(table)}
        self._database: Database | None = None
        self._opened = 0

    def open(self, deadline: Deadline) -> Marker | None:
        """Make the tables if they do not exist, and exclude older writers.

        Raises:
            RefusedError: the table lacks a column or the unique key, or is gone since rows were
                stored in it.
            NotAllowedError: the user lacks a right.
            BrokenInvariantError: the marker is damaged.
            RetryError, UnavailableError: the database does not answer in time.
        """
        self.close()
        database = self._database = self._connect(deadline)
        database.begin(deadline)
        if not self._exists(database, MARKERS):
            database.run(self._sql.make_markers)
        ((format_, opened, *content),) = database.run(
            self._sql.open_marker, {**self._whose, "format": FORMAT}
        )
        check(int(format_), "marker of a sink", MARKERS, FORMAT)
        marker = _marker(*content)
        if not self._exists(database, self._sql.table.name):
            self._make(database, marker)
        # Nothing is stored; what the table lacks is an error now, not in the middle of a batch.
        database.run(self._sql.store, {"rows": "[]"})
        database.run(self._sql.remove, {"ids": []})
        database.commit()
        self._opened = int(opened)
        return marker

    def write(self, batch: Batch, refuse: Refuse, deadline: Deadline) -> None:
        """Store a batch in one transaction.

        Raises:
            FencedError: a newer writer has opened the table.
            RefusedError: the table was altered, and does not accept any row.
            RetryError, UnavailableError: the database does not answer in time.
        """
        database = self._database
        if database is None:
            raise RetryError("the sink is not open", place=str(self._sql.table))
        database.begin(deadline)
        marker = batch.marker
        moved = database.run(
            self._sql.move_marker,
            {
                **self._whose,
                "opened": self._opened,
                "number": marker.number,
                "topic_id": marker.topic_id,
                "positions": json.dumps({str(p): o for p, o in sorted(marker.positions.items())}),
            },
        )
        if not moved:
            self.close()
            raise FencedError("a newer writer has opened the table", place=str(self._sql.table))
        refused = apply(batch.changes, lambda changes: self._attempt(database, changes))
        if refused:
            refuse([RefusedChange(change, REFUSED, why) for change, why in refused])
        database.commit()

    def close(self) -> None:
        """Close the connection."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _attempt(self, database: Database, changes: Sequence[Change]) -> str | None:
        key = self._sql.key
        for one in changes:
            missing = missing_key(one, key) if isinstance(one, Result) else None
            if missing is not None:
                return f"the field {missing} of the key is null"
        statements: list[Statement] = []
        for found in folded(changes, key):
            if found.removed:
                statements.append((self._sql.remove, {"ids": list(found.removed)}))
            if found.rows:
                rows = as_json(found.rows, self._sql.columns)
                statements.append((self._sql.store, {"rows": rows}))
        return database.attempt(statements)

    def _exists(self, database: Database, name: str) -> bool:
        ((found,),) = database.run(self._sql.exists, {"name": self._sql.quoted(name)})
        return bool(found)

    def _make(self, database: Database, marker: Marker | None) -> None:
        if marker is not None:
            raise RefusedError(
                f"{marker.number} batches were stored, but the table is gone",
                place=f"table {self._sql.table}",
                hint=f"bring it back; or delete the row {self._whose} of {MARKERS}, and the table "
                "is made and filled from the beginning of the topic.",
            )
        database.run(self._sql.make_table)
        index = self._sql.make_index
        if index is not None:
            database.run(index)


def make(given: JsonObject, context: Context) -> PostgresqlSink:
    """A sink of its options.

    Raises:
        InputError: an option is wrong, or does not fit the schema.
        BrokenInvariantError: there is no schema.
    """
    found = options(given, context.folder)
    if context.schema is None:
        raise BrokenInvariantError("a sink needs the schema of its topic")
    name = f"medusa {context.connector}"

    def connect(deadline: Deadline) -> Database:
        return Database(found.server, name, deadline)

    return PostgresqlSink(connect, context.connector, found.table, found.by, context.schema)


def _marker(number: Any, topic_id: Any, positions: Any) -> Marker | None:
    """The marker of its columns; None: no batch was stored."""
    if number == 0:
        return None
    try:
        found = {int(p): Offset(int(o)) for p, o in positions.items()}
        return Marker(int(number), TopicId(str(topic_id)), found)
    except (ValueError, TypeError, AttributeError) as error:
        raise BrokenInvariantError("the marker is damaged", place=MARKERS) from error
