from pathlib import Path

import pytest

from connectors.postgresql.options import SYSTEM, VERIFIED, Table, options
from pipeline.errors import InputError
from schemas.json_value import JsonObject

LEAST: JsonObject = {"host": "db", "database": "d", "user": "u", "table": "t"}


def test_connections_are_encrypted_and_verified_unless_it_is_said_otherwise(tmp_path: Path) -> None:
    """Rows are stored by their ids; a file of authorities lies beside the document."""
    found = options(LEAST, tmp_path)
    assert (found.server.tls, found.server.ca, found.server.port) == (VERIFIED, SYSTEM, 5432)
    assert (found.table, found.by) == (Table(None, "t"), ())
    assert str(found.server) == "postgresql://u@db:5432/d"
    others = options({**LEAST, "ca": "ca.pem", "table": "s.t", "by": ["a", "b"]}, tmp_path)
    assert others.server.ca == str(tmp_path / "ca.pem")
    assert (str(others.table), others.by) == ("s.t", ("a", "b"))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"table": "a.b.c"}, "no name of a table"),
        ({"table": 't"; DROP'}, "no name of a table"),
        ({"port": 0}, "from 1 to 65535"),
        ({"tls": "prefer"}, "one of verify-full"),
        ({"by": []}, "different texts"),
        ({"by": ["a", "a"]}, "different texts"),
        ({"colour": "red"}, "no such option"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, given: JsonObject, says: str) -> None:
    """With what would be right."""
    with pytest.raises(InputError, match=says):
        options({**LEAST, **given}, tmp_path)


def test_a_password_is_never_shown(tmp_path: Path) -> None:
    """Neither a wrong one, nor the right one in what is printed."""
    with pytest.raises(InputError) as found:
        options({**LEAST, "password": 12345}, tmp_path)
    assert "12345" not in str(found.value)
    (tmp_path / "secret").write_text("hidden\n")
    server = options({**LEAST, "password": "${file:secret}"}, tmp_path).server
    assert server.password is not None
    assert server.password.reveal() == "hidden"
    assert "hidden" not in f"{server} {server!r}"
