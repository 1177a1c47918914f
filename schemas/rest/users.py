"""User file of a registry: passwords and roles.

    users:
      factory:
        password: ${env:FACTORY_PASSWORD}
        roles: {"": read, cars-: write}

A role applies to subjects with its prefix; the empty prefix to all of them, and to requests without
a subject. A password is written like every other secret: as a reference, or in plain text.
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
    """Read the users of a file.

    Raises:
        InputError: it cannot be read, has the wrong form, or a password cannot be resolved.
    """
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror}", place=str(path)) from error
    except (yaml.YAMLError, ValueError, RecursionError):
        # Not `from`, and not in the message: the error contains text of the file.
        raise InputError("it is no YAML", place=str(path), hint=_HINT) from None
    given = document.get("users") if isinstance(document, dict) and len(document) == 1 else None
    if not isinstance(given, dict) or not given:
        raise InputError("it names no users", place=str(path), hint=_HINT)
    return tuple(_user(path, name, entry) for name, entry in given.items())


def _user(path: Path, name: Json, entry: Json) -> User:
    place = f"{path}, user {name}"
    if not isinstance(name, str) or not name or ":" in name:
        raise InputError("a name is a text without a colon", place=place)
    if not isinstance(entry, dict) or entry.keys() != {"password", "roles"}:
        raise InputError("a user has a password and roles", place=place, hint=_HINT)
    if not isinstance(entry["password"], str) or not entry["password"].strip():
        raise InputError("a password is a text", place=place, hint=_HINT)
    if any("\ud800" <= character <= "\udfff" for character in entry["password"]):
        raise InputError("a password cannot hold half of a surrogate pair", place=place)
    secret = SecretSetting(entry["password"], f"password of {name}", path.parent)
    return User(name, secret.resolve().reveal(), _roles(place, entry["roles"]))


def _roles(place: str, given: Json) -> Mapping[str, Role]:
    if not isinstance(given, dict) or not all(isinstance(prefix, str) for prefix in given):
        raise InputError("roles are texts that names begin with, and a role each", place=place)
    return {prefix: _role(place, role) for prefix, role in given.items()}


def _role(place: str, given: Json) -> Role:
    if not isinstance(given, str) or given not in _ROLES:
        raise InputError(f"{given!r} is not one of {', '.join(_ROLES)}", place=place)
    return _ROLES[given]
