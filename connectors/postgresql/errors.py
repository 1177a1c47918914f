"""Errors of PostgreSQL as ours. Pure.

Codes: appendix A of the manual of PostgreSQL, "PostgreSQL Error Codes".
"""

from typing import Final

import psycopg

from pipeline.clock import Deadline
from pipeline.errors import (
    InputError,
    MedusaError,
    NotAllowedError,
    RefusedError,
    RetryError,
    UnavailableError,
)

_ROW: Final = ("21", "22", "23", "44", "54", "P0")
"""Classes of errors that come from the values of a row: cardinality (two rows with one key by the
collation of the table), data, constraints, views with a check, limits (a key too long for its
index), triggers."""
_AGAIN: Final = ("40", "55006", "55P03", "57014", "42P07", "23505")
"""A lost race, a lock or a statement that took too long, or a table that another run makes."""
_UNAVAILABLE: Final = ("08", "53", "57", "58", "XX")
_RIGHTS: Final = ("28", "42501")


def refuses_row(error: psycopg.Error) -> bool:
    """Whether an error concerns the values of a row: of the server, or of what cannot be sent."""
    code = error.sqlstate
    return isinstance(error, psycopg.DataError) if code is None else code.startswith(_ROW)


def about(error: psycopg.Error) -> str:
    """What the server said, in a line."""
    primary = error.diag.message_primary
    if primary is None:
        return " ".join(str(error).split())
    detail = error.diag.message_detail
    return " ".join((primary if detail is None else f"{primary}: {detail}").split())


def of_connecting(error: psycopg.Error, place: str) -> MedusaError:
    """The error of a connection that was not made.

    The driver has no codes here, so texts decide; one in another language is tried again, and the
    run ends with it.
    """
    text = about(error)
    if "authentication failed" in text or "no password supplied" in text:
        return NotAllowedError(text, place=place, hint="look at the options user and password.")
    if "certificate" in text:
        hint = "renew the certificate of the server, or look at the options host and ca."
        return InputError(text, place=place, hint=hint)
    if "does not support SSL" in text:
        hint = "let the server encrypt, or write tls: disable."
        return InputError(text, place=place, hint=hint)
    if 'FATAL:  database "' in text or 'FATAL: database "' in text:
        return InputError(text, place=place, hint="look at the option database.")
    return UnavailableError(text, place=place)


def of_statement(error: psycopg.Error, place: str, deadline: Deadline) -> MedusaError:
    """The error of a statement.

    Args:
        error: of the driver.
        place: the database.
        deadline: of the statement; a connection that is lost after it was ended by it.
    """
    code, text = error.sqlstate or "08", about(error)
    if deadline.passed:
        return RetryError(f"{deadline.what} did not finish in time: {text}", place=place)
    if code.startswith(_RIGHTS):
        return NotAllowedError(text, place=place, hint="give the user the rights that it names.")
    if code.startswith(_AGAIN):
        return RetryError(text, place=place)
    if code.startswith(_UNAVAILABLE):
        return UnavailableError(text, place=place)
    hint = "make the table as docs/connectors/postgresql.md says; a run that starts looks at it."
    return RefusedError(text, place=place, hint=hint)
