"""The file that says who may do what with a registry.

    users:
      factory:
        password: ${env:FACTORY_PASSWORD}
        roles: {"": read, cars-: write}

A role holds for subjects whose names begin so; the empty text stands for all of them, and for what
belongs to none. A password is written as every other secret is: by reference, or as it is.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from pipeline.errors import InputError
from pipeline.secrets import SecretSetting
from schemas.json_value import Json
from schemas.rest.access import Role, User

_ROLES: Final = {role.name.lower(): role for role in Role}
_HINT: Final = 'users: {NAME: {password: "${env:…}", roles: {"cars-": write}}}'


def read_users(path: Path) -> tuple[User, ...]:
    """The users in a file.

    Raises:
        InputError: it cannot be read, has another form, or a password is not where it should be.
    """
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror}", place=str(path)) from error
    except (yaml.YAMLError, ValueError, RecursionError):
        # Not `from`, and not in the message: the error carries what the file holds.
        raise InputError("it is no YAML", place=str(path), hint=_HINT) from None
    given = document.get("users") if isinstance(document, dict) and len(document) == 1 else None
    if not isinstance(given, dict) or not given:
        raise InputError("it names no users", place=str(path), hint=_HINT)
    return tuple(_user(path, name, told) for name, told in given.items())


def _user(path: Path, name: Json, told: Json) -> User:
    place = f"{path}, user {name}"
    if not isinstance(name, str) or not name or ":" in name:
        raise InputError("a name is a text without a colon", place=place)
    if not isinstance(told, dict) or told.keys() != {"password", "roles"}:
        raise InputError("a user has a password and roles", place=place, hint=_HINT)
    if not isinstance(told["password"], str) or not told["password"].strip():
        raise InputError("a password is a text", place=place, hint=_HINT)
    if any("\ud800" <= character <= "\udfff" for character in told["password"]):
        raise InputError("a password cannot hold half of a surrogate pair", place=place)
    secret = SecretSetting(told["password"], f"password of {name}", path.parent)
    return User(name, secret.resolve().reveal(), _roles(place, told["roles"]))


def _roles(place: str, given: Json) -> Mapping[str, Role]:
    if not isinstance(given, dict) or not all(isinstance(prefix, str) for prefix in given):
        raise InputError("roles are texts that names begin with, and a role each", place=place)
    return {prefix: _role(place, role) for prefix, role in given.items()}


def _role(place: str, given: Json) -> Role:
    if not isinstance(given, str) or given not in _ROLES:
        raise InputError(f"{given!r} is not one of {', '.join(_ROLES)}", place=place)
    return _ROLES[given]
