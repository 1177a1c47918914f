import psycopg
import pytest
from psycopg import errors

from connectors.postgresql.errors import of_connecting, of_statement, refuses_row
from pipeline.clock import Deadline
from pipeline.errors import (
    InputError,
    MedusaError,
    NotAllowedError,
    RefusedError,
    RetryError,
    UnavailableError,
)
from tests.unit.connectors.twins import TickingClock


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.DiskFull("full"), UnavailableError),
        (errors.AdminShutdown("down"), UnavailableError),
        (psycopg.OperationalError("the connection is lost"), UnavailableError),
        (errors.SerializationFailure("lost"), RetryError),
        (errors.QueryCanceled("too long"), RetryError),
        (errors.LockNotAvailable("locked"), RetryError),
        (errors.InsufficientPrivilege("no"), NotAllowedError),
        (errors.UndefinedColumn("none"), RefusedError),
    ],
)
def test_errors_of_statements_say_what_to_do(error: psycopg.Error, kind: type[MedusaError]) -> None:
    """Try again, wait for the server, or change something."""
    deadline = Deadline.after(TickingClock(), 10, "a call")
    assert type(of_statement(error, "here", deadline)) is kind


def test_what_fails_after_the_deadline_was_ended_by_it() -> None:
    """With the name of the call."""
    clock = TickingClock()
    deadline = Deadline.after(clock, 10, "a call")
    clock.sleep(11)
    found = of_statement(psycopg.OperationalError("lost"), "here", deadline)
    assert isinstance(found, RetryError)
    assert "a call did not finish in time" in found.message


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('FATAL:  password authentication failed for user "u"', NotAllowedError),
        ("SSL error: certificate verify failed", InputError),
        ("server does not support SSL, but SSL was required", InputError),
        ('FATAL:  database "d" does not exist', InputError),
        ("Connection refused", UnavailableError),
        ("FATAL:  the database system is starting up", UnavailableError),
    ],
)
def test_errors_of_connecting_say_what_to_do(text: str, kind: type[MedusaError]) -> None:
    """What no other try mends is not tried again."""
    assert type(of_connecting(psycopg.OperationalError(text), "here")) is kind


def test_errors_of_values_refuse_a_row() -> None:
    """Of the server, or of a value that cannot be sent; a lost connection has no code."""
    of_row = (errors.NotNullViolation(), errors.NumericValueOutOfRange())
    assert all(map(refuses_row, (*of_row, errors.ProgramLimitExceeded(), psycopg.DataError("NUL"))))
    assert not refuses_row(errors.UndefinedTable())
    assert not refuses_row(psycopg.OperationalError("the connection is lost"))
