"""Options of the sink `postgresql`, checked. Pure."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from connectors.options import checked, one_of, secret, text, texts, whole
from pipeline.errors import InputError
from pipeline.secrets import Secret
from schemas.json_value import JsonObject

VERIFIED, ENCRYPTED, PLAIN = "verify-full", "require", "disable"
SYSTEM: Final = "system"
"""The certificate authorities that this machine trusts."""
_TABLE: Final = re.compile(r"(?:([A-Za-z_][A-Za-z0-9_]*)\.)?([A-Za-z_][A-Za-z0-9_]*)")


@dataclass(frozen=True, slots=True)
class Table:
    """The name of a table; `schema` None: the first schema of the user's search path."""

    schema: str | None
    name: str

    def __str__(self) -> str:
        return self.name if self.schema is None else f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Server:
    """How a database is reached.

    Args:
        host: name or address.
        database: its name.
        user: of the database.
        password: of the user; None: the server asks for none.
        port: of the server.
        tls: whether the connection is encrypted, and the server's certificate verified.
        ca: a file with certificate authorities, or `SYSTEM`.
    """

    host: str
    database: str
    user: str
    password: Secret | None = None
    port: int = 5432
    tls: str = VERIFIED
    ca: str = SYSTEM

    def __str__(self) -> str:
        return f"postgresql://{self.user}@{self.host}:{self.port}/{self.database}"


@dataclass(frozen=True, slots=True)
class Options:
    """All options.

    Args:
        server: where the table is.
        table: its name.
        by: the fields that make the key of a row; none: the id of the result.
    """

    server: Server
    table: Table
    by: tuple[str, ...]


def options(given: JsonObject, folder: Path) -> Options:
    """Check the options of a sink; paths begin at the folder.

    Raises:
        InputError: an option is missing, unknown or wrong.
    """
    found = checked(
        given,
        {
            "host": text,
            "port": whole(1, 65_535),
            "database": text,
            "user": text,
            "password": secret("password", folder),
            "tls": one_of(VERIFIED, ENCRYPTED, PLAIN),
            "ca": text,
            "table": text,
            "by": texts,
        },
        required=("host", "database", "user", "table"),
    )
    by = found.pop("by", ())
    named = _TABLE.fullmatch(found["table"])
    if named is None:
        raise InputError(
            f"{found['table']} is no name of a table",
            place="table",
            hint="write table or schema.table, of letters, digits and underscores.",
        )
    del found["table"]
    if found.get("ca", SYSTEM) != SYSTEM:
        found["ca"] = str((folder / found["ca"]).absolute())
    return Options(Server(**found), Table(named[1], named[2]), by)
