"""The file of users and roles: its contents, and every way in which it can be wrong."""

from pathlib import Path

import pytest

from pipeline.errors import InputError
from schemas.rest.access import Role
from schemas.rest.users import read_users

SECRET = "a word that nobody is told"


def written(folder: Path, text: str) -> Path:
    """A file of users."""
    path = folder / "users.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_users_have_a_password_and_roles(tmp_path: Path) -> None:
    """A password may be in a separate file; a role is for a prefix of names."""
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    text = 'users: {a: {password: "${file:secret}", roles: {"": read, cars-: write, x: admin}}}'
    (user,) = read_users(written(tmp_path, text))
    assert (user.name, user.password) == ("a", SECRET)
    assert user.roles == {"": Role.READ, "cars-": Role.WRITE, "x": Role.ADMIN}
    assert SECRET not in repr(user)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "names no users"),
        ("[]", "names no users"),
        ("users: {}", "names no users"),
        ("users: [a]", "names no users"),
        ("users: {a: {password: x, roles: {}}}\nmore: 1", "names no users"),
        ("users: {a: x}", "a user has a password and roles"),
        ("users: {a: {password: x}}", "a user has a password and roles"),
        ("users: {a: {password: x, roles: {}, more: 1}}", "a user has a password and roles"),
        ("users: {7: {password: x, roles: {}}}", "a name is a text"),
        ('users: {"a:b": {password: x, roles: {}}}', "without a colon"),
        ("users: {a: {password: 7, roles: {}}}", "a password is a text"),
        ('users: {a: {password: " ", roles: {}}}', "a password is a text"),
        ('users: {a: {password: "\\ud800", roles: {}}}', "half of a surrogate pair"),
        ('users: {a: {password: "${env:NOT_SET_ANYWHERE}", roles: {}}}', "NOT_SET_ANYWHERE"),
        ('users: {a: {password: "${file:nowhere}", roles: {}}}', "cannot be read"),
        ("users: {a: {password: x, roles: [read]}}", "roles are texts"),
        ("users: {a: {password: x, roles: {7: read}}}", "roles are texts"),
        (
            "users: {a: {password: x, roles: {s: owner}}}",
            "'owner' is not one of",
        ),
        ("users: {a: {password: x, roles: {s: [read]}}}", "is not one of"),
        ("users: {a: {password: 2020-13-45, roles: {}}}", "no YAML"),
        ("users: {a: ", "no YAML"),
        ("[" * 3_000, "no YAML"),
    ],
)
def test_errors_are_reported_with_the_file(tmp_path: Path, text: str, told: str) -> None:
    """Never with the contents of a password field."""
    with pytest.raises(InputError, match=told) as caught:
        read_users(written(tmp_path, text))
    assert str(tmp_path) in caught.value.place or "password of a" in caught.value.place


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    """By its name."""
    with pytest.raises(InputError, match="cannot be read"):
        read_users(tmp_path / "nowhere")
