"""The statements of the sink `postgresql`, with names quoted as the table needs them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from psycopg.sql import SQL, Composable, Composed, Identifier

from connectors.postgresql.columns import ID, Column
from connectors.postgresql.options import Table

MARKERS: Final = "medusa_connectors"
"""The table of markers, in the schema of the table of rows."""


@dataclass(frozen=True, slots=True)
class Statements:
    """Statements about one table.

    Args:
        table: that has the rows.
        columns: of the fields of the rows.
        key: the fields that make the key of a row; none: its id is the key.
    """

    table: Table
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @property
    def make_markers(self) -> Composed:
        """Make the table of markers."""
        return SQL(
            "CREATE TABLE {} (connector text, target text, format integer NOT NULL,"
            " opened bigint NOT NULL, number bigint NOT NULL, topic_id text NOT NULL,"
            " positions jsonb NOT NULL, PRIMARY KEY (connector, target))"
        ).format(self._name(MARKERS))

    @property
    def make_table(self) -> Composed:
        """Make the table of rows."""
        columns = [SQL("{} {}").format(Identifier(one.name), SQL(one.type)) for one in self.columns]
        keys = [SQL("PRIMARY KEY ({})").format(_names(self._key))]
        first = SQL("{} text NOT NULL").format(Identifier(ID))
        whole = SQL(", ").join([first, *columns, *keys])
        return SQL("CREATE TABLE {} ({})").format(self._table, whole)

    @property
    def make_index(self) -> Composed | None:
        """Make the index by which corrections find rows; None: the primary key is that."""
        if not self.key:
            return None
        return SQL("CREATE INDEX ON {} ({})").format(self._table, Identifier(ID))

    @property
    def exists(self) -> SQL:
        """Whether a table exists: of `name`."""
        return SQL("SELECT to_regclass(%(name)s) IS NOT NULL")

    def quoted(self, name: str) -> str:
        """The name of a table beside that of the rows, as PostgreSQL writes it."""
        parts = [part for part in (self.table.schema, name) if part is not None]
        return ".".join(f'"{part}"' for part in parts)

    @property
    def open_marker(self) -> Composed:
        """Become the writer: of `connector`, `target`, `format`; returns the whole marker."""
        return SQL(
            "INSERT INTO {} AS held VALUES"
            " (%(connector)s, %(target)s, %(format)s, 1, 0, '', '{{}}')"
            " ON CONFLICT (connector, target) DO UPDATE SET opened = held.opened + 1"
            " RETURNING format, opened, number, topic_id, positions"
        ).format(self._name(MARKERS))

    @property
    def move_marker(self) -> Composed:
        """Replace the marker of the writer `opened`; returns no row if there is a newer one."""
        return SQL(
            "UPDATE {} SET number = %(number)s, topic_id = %(topic_id)s, positions = %(positions)s"
            " WHERE connector = %(connector)s AND target = %(target)s AND opened = %(opened)s"
            " RETURNING 1"
        ).format(self._name(MARKERS))

    @property
    def remove(self) -> Composed:
        """Remove the rows of the results `ids`."""
        return SQL("DELETE FROM {} WHERE {} = ANY(%(ids)s)").format(self._table, Identifier(ID))

    @property
    def store(self) -> Composed:
        """Store `rows`, a JSON array whose values PostgreSQL converts by the table's columns."""
        names = [ID, *(one.name for one in self.columns)]
        others = [name for name in names if name not in self._key]
        assignments = [SQL("{0} = excluded.{0}").format(Identifier(name)) for name in others]
        action: Composable = SQL("NOTHING")
        if assignments:
            action = SQL("UPDATE SET {}").format(SQL(", ").join(assignments))
        return SQL(
            "INSERT INTO {table} ({names}) SELECT {names}"
            " FROM json_populate_recordset(NULL::{table}, %(rows)s::json)"
            " ON CONFLICT ({key}) DO {action}"
        ).format(table=self._table, names=_names(names), key=_names(self._key), action=action)

    @property
    def _key(self) -> tuple[str, ...]:
        return self.key or (ID,)

    @property
    def _table(self) -> Composable:
        return self._name(self.table.name)

    def _name(self, name: str) -> Composable:
        parts = (name,) if self.table.schema is None else (self.table.schema, name)
        return Identifier(*parts)


def _names(names: Sequence[str]) -> Composed:
    return SQL(", ").join([Identifier(name) for name in names])
