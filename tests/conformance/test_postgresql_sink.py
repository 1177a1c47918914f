"""The sink `postgresql` on a PostgreSQL server: its contract, corrections, and bad input."""

import datetime as dt
import itertools
import json
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Composed, Identifier

from connectors.catalogue import Context
from connectors.conformance.crashing import Steps
from connectors.conformance.sinks import BATCHES, SinkWorld, accept_all, batch, check_sink
from connectors.postgresql.database import Database, Statement
from connectors.postgresql.options import Server as Address
from connectors.postgresql.options import Table
from connectors.postgresql.sink import PostgresqlSink, make
from connectors.sink import Batch, Change, Marker, RefusedChange, Removal, Result
from pipeline.clock import Deadline
from pipeline.errors import (
    InputError,
    NotAllowedError,
    RefusedError,
    RetryError,
    SchemaError,
    UnavailableError,
)
from pipeline.ids import ConnectorName, Offset, TopicId
from pipeline.secrets import Secret
from pipeline.system_clock import SystemClock
from schemas.avro import parse
from schemas.json_value import JsonObject
from tests.certificates import Authority
from tests.encrypting import encrypting
from tests.postgresql import DATABASE, PASSWORD, USER, Server, running

NAME = ConnectorName("tried")
SCHEMA = parse(
    '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"},'
    ' {"name": "text", "type": "string"},'
    ' {"name": "none", "type": ["null", "double"], "default": null}]}'
)
WITHIN_S = 30.0
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server for all tests; each has tables of its own."""
    with running({}) as found:
        yield found


@pytest.fixture
def table() -> Table:
    """The name of a table that does not exist."""
    return Table(None, f"results_{next(NUMBERS)}")


def address(server: Server, **others: Any) -> Address:
    """How a server is reached."""
    options = {"port": server.port, "tls": "disable", "password": Secret(PASSWORD)}
    given = {"host": "127.0.0.1", "database": DATABASE, "user": USER, **options, **others}
    return Address(**given)


def deadline(seconds: float = WITHIN_S) -> Deadline:
    """Of a call."""
    return Deadline.after(SystemClock(), seconds, "a call")


def sink_at(to: Address, table: Table, by: tuple[str, ...] = ()) -> PostgresqlSink:
    """A sink as a run has it."""
    return PostgresqlSink(lambda until: Database(to, "tried", until), NAME, table, by, SCHEMA)


def sink_of(server: Server, table: Table, by: tuple[str, ...] = ()) -> PostgresqlSink:
    """The same, with the address of a server."""
    return sink_at(address(server), table, by)


def stored(server: Server, table: Table) -> list[JsonObject]:
    """The rows of a table; none if there is no table."""
    with server.connect() as connection:
        return selected(connection, table)


def selected(connection: psycopg.Connection, table: Table) -> list[JsonObject]:
    """The same, by a connection that is open."""
    query = SQL("SELECT n, text, none FROM {} ORDER BY n").format(Identifier(table.name))
    if connection.execute("SELECT to_regclass(%s)", (table.name,)).fetchone() == (None,):
        return []
    return [{"n": n, "text": text, "none": none} for n, text, none in connection.execute(query)]


class SteppedDatabase(Database):
    """A step before everything that is done to the database, and after a commit."""

    step: Callable[[], None]

    def run(
        self, statement: SQL | Composed, parameters: Mapping[str, Any] | None = None
    ) -> list[tuple[Any, ...]]:
        """See `Database`."""
        self.step()
        return super().run(statement, parameters)

    def attempt(self, statements: Sequence[Statement]) -> str | None:
        """See `Database`."""
        self.step()
        return super().attempt(statements)

    def commit(self) -> None:
        """See `Database`."""
        self.step()
        super().commit()
        self.step()


class World:
    """A table, and the connections of processes that end with them."""

    def __init__(self, server: Server, reader: psycopg.Connection, by: tuple[str, ...]) -> None:
        self._server = server
        self._reader = reader
        self._by = by
        self.table = Table(None, f"results_{next(NUMBERS)}")
        self._connections: list[Database] = []

    def open(self, step: Steps) -> PostgresqlSink:
        """A sink of a new process."""

        def connect(until: Deadline) -> Database:
            class Stepped(SteppedDatabase):
                pass

            Stepped.step = staticmethod(step)
            found = Stepped(address(self._server), "tried", until)
            self._connections.append(found)
            return found

        return PostgresqlSink(connect, NAME, self.table, self._by, SCHEMA)

    def crash(self) -> None:
        """The connections of the process are gone."""
        for one in self._connections:
            one.close()

    def as_world(self) -> SinkWorld:
        """What the suite needs of it."""
        return SinkWorld(
            self.open,
            lambda: selected(self._reader, self.table),
            self.crash,
            SystemClock(),
            {"n": -1, "text": "no text \0", "none": None},
        )


@pytest.mark.parametrize("by", [(), ("n",)])
def test_the_sink_fulfils_its_contract(server: Server, by: tuple[str, ...]) -> None:
    """With a crash before and after each statement, and a row that the server refuses."""
    with server.connect() as reader:
        assert check_sink(lambda: World(server, reader, by).as_world()) > 5 * BATCHES


def row(n: int, text: str, id_: str, *, corrects: bool = False) -> Result:
    """A row of a topic."""
    return Result({"n": n, "text": text, "none": None}, 0, Offset(0), id_, corrects)


def write(sink: PostgresqlSink, number: int, *changes: Change) -> list[RefusedChange]:
    """Write a batch; returns what is refused."""
    refused: list[RefusedChange] = []
    marker = Marker(number, TopicId("tried"), {0: Offset(number)})
    sink.write(Batch(changes, marker), refused.extend, deadline())
    return refused


def texts(server: Server, table: Table) -> list[tuple[object, object]]:
    """Key and text of each row."""
    return [(one["n"], one["text"]) for one in stored(server, table)]


def test_corrections_replace_and_remove_rows_by_id(server: Server, table: Table) -> None:
    """In one batch with what they correct, and in later ones."""
    sink = sink_of(server, table)
    sink.open(deadline())
    write(sink, 1, row(1, "a", "x"), row(2, "b", "y"), row(3, "c", "x", corrects=True))
    assert texts(server, table) == [(2, "b"), (3, "c")]
    write(sink, 2, Removal(0, Offset(0), "y"), row(4, "d", "x", corrects=True))
    assert texts(server, table) == [(4, "d")]
    sink.close()


def test_rows_are_stored_by_key(server: Server, table: Table) -> None:
    """The last one counts; removing an earlier one of the key changes nothing."""
    sink = sink_of(server, table, ("n",))
    sink.open(deadline())
    write(sink, 1, row(1, "a", "x"), row(1, "b", "y"), row(2, "c", "z"))
    assert texts(server, table) == [(1, "b"), (2, "c")]
    write(sink, 2, Removal(0, Offset(0), "x"), row(5, "d", "z", corrects=True))
    assert texts(server, table) == [(1, "b"), (5, "d")]
    write(sink, 3, Removal(0, Offset(0), "y"))
    assert texts(server, table) == [(5, "d")]
    sink.close()


def test_one_refused_row_of_a_thousand_stops_no_other_one(server: Server, table: Table) -> None:
    """By a constraint of the table, by what no column can have, and by a key that is null."""
    sink = sink_of(server, table, ("none",))
    with server.connect() as connection:
        name = Identifier(table.name)
        columns = SQL("n bigint CHECK (n <> 7), text text, none double precision UNIQUE")
        connection.execute(SQL("CREATE TABLE {} (medusa_id text, {})").format(name, columns))
    sink.open(deadline())
    rows = [
        Result({"n": n, "text": "\0" if n == 500 else "t", "none": float(n)}, 0, Offset(n), f"{n}")
        for n in range(1_000)
    ]
    rows[900] = row(900, "t", "900")
    refused = write(sink, 1, *rows)
    assert [(one.change.id, one.reason) for one in refused] == [
        ("7", "refused"),
        ("500", "refused"),
        ("900", "refused"),
    ]
    assert "check" in refused[0].message
    assert "key is null" in refused[2].message
    assert len(stored(server, table)) == 997
    sink.close()


def test_a_constraint_that_is_checked_at_the_commit_refuses_one_row(
    server: Server, table: Table
) -> None:
    """It is checked with each row instead."""
    sink = sink_of(server, table)
    sink.open(deadline())
    known = Identifier(f"{table.name}_known")
    with server.connect() as connection:
        connection.execute(SQL("CREATE TABLE {} (n bigint PRIMARY KEY)").format(known))
        connection.execute(SQL("INSERT INTO {} VALUES (1), (3)").format(known))
        constraint = SQL("ALTER TABLE {} ADD FOREIGN KEY (n) REFERENCES {} INITIALLY DEFERRED")
        connection.execute(constraint.format(Identifier(table.name), known))
    refused = write(sink, 1, row(1, "a", "x"), row(2, "b", "y"), row(3, "c", "z"))
    assert [one.change.id for one in refused] == ["y"]
    assert texts(server, table) == [(1, "a"), (3, "c")]
    sink.close()


def test_values_of_all_types_arrive_as_they_are(server: Server, table: Table) -> None:
    """In the columns of the table that Medusa makes."""
    types: dict[str, tuple[Any, JsonObject | str, Any]] = {
        "b": (True, "boolean", True),
        "i": (7, "int", 7),
        "f": (1.5, "float", 1.5),
        "nan": ("NaN", "double", "NaN"),
        "raw": ({"base64": "/wA="}, "bytes", "\\xff00"),
        "readable": ("a\\b", "bytes", "\\x615c62"),
        "kind": ("A", {"type": "enum", "name": "E", "symbols": ["A"]}, "A"),
        "many": ([1, 2], {"type": "array", "items": "int"}, "[1, 2]"),
        "sum": (
            "12.340",
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3},
            "12.340",
        ),
        "at": (
            "2026-01-01T00:00:00.250Z",
            {"type": "long", "logicalType": "timestamp-millis"},
            "2026-01-01 00:00:00.25+00",
        ),
        "day": ("2026-01-01", {"type": "int", "logicalType": "date"}, "2026-01-01"),
    }
    fields = [{"name": name, "type": type_} for name, (_, type_, _) in types.items()]
    schema = parse(json.dumps({"type": "record", "name": "R", "fields": fields}))
    sink = PostgresqlSink(
        lambda until: Database(address(server), "tried", until), NAME, table, (), schema
    )
    sink.open(deadline())
    given = {name: value for name, (value, _, _) in types.items()}
    assert write(sink, 1, Result(given, 0, Offset(0), "x")) == []
    sink.close()
    columns = SQL(", ").join([SQL("{}::text").format(Identifier(name)) for name in types])
    with server.connect() as connection:
        connection.execute("SET TIME ZONE 'UTC'")
        query = SQL("SELECT {} FROM {}").format(columns, Identifier(table.name))
        found = connection.execute(query).fetchone()
    expected = [str(one).lower() if one is True else str(one) for _, _, one in types.values()]
    assert list(found or ()) == expected


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("medusa_id text PRIMARY KEY, n bigint, text text", 'column "none"'),
        ("medusa_id text, n bigint, text text, none double precision", "no unique"),
        ("n bigint UNIQUE, text text, none double precision", "medusa_id"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_at_the_start(
    server: Server, table: Table, columns: str, says: str
) -> None:
    """With what it lacks."""
    with server.connect() as connection:
        name = Identifier(table.name)
        connection.execute(SQL("CREATE TABLE {} ({})").format(name, SQL(columns)))
    sink = sink_of(server, table)
    with pytest.raises(RefusedError, match=says):
        sink.open(deadline())


def test_a_table_that_is_altered_or_removed_stops_the_run(server: Server, table: Table) -> None:
    """Neither stores the marker without its rows, and a table is not made anew silently."""
    sink = sink_of(server, table)
    sink.open(deadline())
    write(sink, 1, row(1, "a", "x"))
    with server.connect() as connection:
        connection.execute(SQL("ALTER TABLE {} DROP COLUMN text").format(Identifier(table.name)))
        with pytest.raises(RefusedError, match="text"):
            write(sink, 2, row(2, "b", "y"))
        connection.execute(SQL("DROP TABLE {}").format(Identifier(table.name)))
    with pytest.raises(RefusedError, match="the table is gone"):
        sink.open(deadline())
    sink.close()


def test_a_wrong_password_or_database_is_named(server: Server, table: Table) -> None:
    """And is not tried again."""

    def opening(**others: Any) -> PostgresqlSink:
        return sink_at(address(server, **others), table)

    for password in (None, Secret("wrong")):
        with pytest.raises(NotAllowedError, match="password"):
            opening(password=password).open(deadline())
    with pytest.raises(InputError, match="database"):
        opening(database="none").open(deadline())
    with pytest.raises(InputError, match="does not support SSL"):
        opening(tls="require").open(deadline())
    with pytest.raises(UnavailableError):
        opening(port=1).open(deadline())


def test_rights_that_lack_are_named(server: Server, table: Table) -> None:
    """The user may connect, but not make a table."""
    with server.connect() as connection:
        connection.execute("CREATE ROLE reader LOGIN PASSWORD 'p'")
    reader = Address("127.0.0.1", DATABASE, "reader", Secret("p"), port=server.port, tls="disable")
    sink = sink_at(reader, table)
    with pytest.raises(NotAllowedError, match="permission denied"):
        sink.open(deadline())


def test_certificates_are_verified(server: Server, table: Table, tmp_path: Path) -> None:
    """Of the right authority and not expired, else nothing is sent."""
    authority = Authority(tmp_path / "ca", "the authority")
    good, expired = authority.sign("good"), authority.sign("expired", valid=dt.timedelta(days=-1))
    for certificate, says in ((good, None), (expired, "certificate")):
        with encrypting(certificate, server.port) as port:
            encrypted = address(server, port=port, tls="verify-full", ca=str(authority.ca))
            sink = sink_at(encrypted, table)
            if says is None:
                assert sink.open(deadline()) is None
                sink.close()
                continue
            with pytest.raises(InputError, match=says):
                sink.open(deadline())


def test_a_suspended_server_does_not_hold_a_run(server: Server, table: Table) -> None:
    """The call ends with its deadline, and the marker tells afterwards what is stored."""
    sink = sink_of(server, table)
    sink.open(deadline())
    server.signal(signal.SIGSTOP)
    try:
        with pytest.raises(RetryError, match="did not finish in time"):
            sink.write(batch(1), accept_all, deadline(1.0))
    finally:
        server.signal(signal.SIGCONT)
    marker = sink.open(deadline())
    assert len(stored(server, table)) == (0 if marker is None else 3)
    sink.close()


def test_a_server_that_is_killed_loses_nothing(table: Table) -> None:
    """While batches are written; the run that goes on has each row once."""
    with running({}) as server:
        sink = sink_of(server, table)
        sink.open(deadline())
        written = threading.Event()

        def write_all() -> None:
            for number in range(1, 100_000):
                try:
                    sink.write(batch(number), accept_all, deadline())
                except UnavailableError:
                    return
                if number == 50:
                    written.set()

        writer = threading.Thread(target=write_all)
        writer.start()
        assert written.wait(WITHIN_S)
        server.kill()
        writer.join(WITHIN_S)
        server.start()
        marker = sink.open(deadline())
        assert marker is not None
        assert marker.number >= 50
        rows = [one["n"] for one in stored(server, table)]
        assert rows == list(range(marker.number * 3))
        write(sink, marker.number + 1, row(-1, "a", "one more"))
        assert len(stored(server, table)) == len(rows) + 1
        sink.close()


def test_options_make_a_sink_that_writes(server: Server, table: Table, tmp_path: Path) -> None:
    """As in the document of a connector; a key must be a field with one value."""
    (tmp_path / "secret").write_text(f"{PASSWORD}\n")
    given: JsonObject = {
        "host": "127.0.0.1",
        "port": server.port,
        "database": DATABASE,
        "user": USER,
        "password": "${file:secret}",
        "tls": "disable",
        "table": f"public.{table.name}",
        "by": "n",
    }
    context = Context(tmp_path, SystemClock(), SCHEMA, NAME)
    sink = make(given, context)
    sink.open(deadline())
    assert write(sink, 1, row(1, "a", "x"), row(1, "b", "y")) == []
    assert texts(server, table) == [(1, "b")]
    sink.close()
    with pytest.raises(SchemaError, match="no field colour"):
        make({**given, "by": ["colour"]}, context)
