"""A connection to PostgreSQL, with deadlines, and its errors as ours. No other module opens one."""

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Timer
from typing import Any, Final

import psycopg
from psycopg.sql import SQL, Composed

from connectors.postgresql.errors import about, of_connecting, of_statement, refuses_row
from connectors.postgresql.options import VERIFIED, Server
from pipeline.clock import Deadline
from pipeline.errors import MedusaError

Statement = tuple[SQL | Composed, Mapping[str, Any]]
CONNECT_S: Final = 10.0
ABANDONED_MS: Final = 90_000
"""A server that hears nothing for so long within a transaction ends it: longer than it may take to
write dead letters, short enough for the next run to wait for the lock."""
_LIMITS: Final = SQL(
    "SELECT set_config('statement_timeout', %(ms)s, true),"
    " set_config('lock_timeout', %(ms)s, true),"
    " set_config('idle_in_transaction_session_timeout', %(idle_ms)s, true)"
)
_CHECK_AT_ONCE: Final = SQL("SET CONSTRAINTS ALL IMMEDIATE")
"""At the commit it is not known any more which row a constraint refuses."""


class Database:
    """One connection; each transaction begins with `begin` and ends with `commit` or `close`.

    After an error the transaction is over, and the connection is closed.

    Args:
        server: where to connect to.
        name: shown by the server.
        deadline: of connecting.

    Raises:
        NotAllowedError: user or password are wrong.
        InputError: there is no such database, or the certificate is not to be trusted.
        UnavailableError: the server does not answer.
    """

    def __init__(self, server: Server, name: str, deadline: Deadline) -> None:
        self._server = server
        self._watch: tuple[Timer, int] | None = None
        self._deadline = deadline
        deadline.check()
        try:
            self._connection = psycopg.connect(
                host=server.host,
                port=server.port,
                dbname=server.database,
                user=server.user,
                password=None if server.password is None else server.password.reveal(),
                sslmode=server.tls,
                sslrootcert=server.ca if server.tls == VERIFIED else None,
                application_name=name,
                connect_timeout=max(2, int(min(CONNECT_S, deadline.remaining_s()))),
                prepare_threshold=None,  # poolers give each transaction another connection
            )
        except psycopg.Error as error:
            raise of_connecting(error, str(server)) from error

    def begin(self, deadline: Deadline) -> None:
        """Begin a transaction, which ends with the deadline, whatever the server does."""
        deadline.check()
        self._deadline = deadline
        left_s = deadline.remaining_s()
        # A server that is suspended keeps the connection, and observes none of its own limits.
        with self._translated():
            descriptor = os.dup(self._connection.fileno())
        timer = Timer(left_s, _shut_down, (descriptor,))
        timer.daemon = True
        timer.start()
        self._watch = timer, descriptor
        limits = {"ms": str(int(left_s * 1_000) + 1), "idle_ms": str(ABANDONED_MS)}
        self.run(_LIMITS, limits)
        self.run(_CHECK_AT_ONCE)

    def run(
        self, statement: SQL | Composed, parameters: Mapping[str, Any] | None = None
    ) -> list[tuple[Any, ...]]:
        """Execute a statement; returns its rows.

        Raises:
            RefusedError: the database does not have, or does not allow, what the statement needs.
            RetryError, UnavailableError: it is not known what was done.
        """
        with self._translated():
            cursor = self._connection.execute(statement, parameters)
            return cursor.fetchall() if cursor.description is not None else []

    def attempt(self, statements: Sequence[Statement]) -> str | None:
        """Execute statements, all or none; returns why a row is refused. None: they are executed.

        Raises:
            RefusedError, RetryError, UnavailableError: see `run`.
        """
        with self._translated():
            try:
                with self._connection.transaction():  # a savepoint
                    for statement, parameters in statements:
                        self._connection.execute(statement, parameters)
            except psycopg.Error as error:
                if not refuses_row(error):
                    raise
                return about(error)
        return None

    def commit(self) -> None:
        """Commit the transaction.

        Raises:
            RetryError, UnavailableError: it is not known whether it is committed.
        """
        with self._translated():
            self._connection.commit()
        self._unwatch()

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back. May be repeated."""
        self._unwatch()
        self._connection.close()

    def _unwatch(self) -> None:
        if self._watch is not None:
            timer, descriptor = self._watch
            timer.cancel()
            timer.join()
            os.close(descriptor)
            self._watch = None

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            translated: MedusaError = of_statement(error, str(self._server), self._deadline)
            self.close()
            raise translated from error


OpenDatabase = Callable[[Deadline], Database]
"""Connects anew."""


def _shut_down(descriptor: int) -> None:
    """End a connection, so that whoever waits for an answer learns it."""
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        connection.shutdown(socket.SHUT_RDWR)
