"""Authentication and authorization: users with roles for prefixes of subjects. Pure."""

import base64
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from schemas.registry.names import SubjectName
from schemas.rest.call import Call, denied
from schemas.rest.errors import HttpError
from schemas.rest.routes import Right, Route

REALM: Final = "SchemaRegistry"


class Role(IntEnum):
    """Role of a user; each role includes the preceding ones."""

    READ = 1
    WRITE = 2
    ADMIN = 3


_NEEDED: Final[Mapping[Right, Role]] = {
    Right.READ: Role.READ,
    Right.WRITE: Role.WRITE,
    Right.ADMIN: Role.ADMIN,
}


@dataclass(frozen=True, slots=True)
class User:
    """A user with roles.

    Args:
        name: the login name.
        password: `repr` omits it.
        roles: the role for each prefix of subjects; the empty prefix: for everything.
    """

    name: str
    password: str = field(repr=False)
    roles: Mapping[str, Role]

    def may(self, needed: Role, subject: str) -> bool:
        """Whether the user has a role for a subject; the empty text: for everything."""
        fits = (role for prefix, role in self.roles.items() if subject.startswith(prefix))
        return any(role >= needed for role in fits)

    def reads(self, name: SubjectName) -> bool:
        """Whether the user may read a subject."""
        return self.may(Role.READ, str(name))

    def may_somewhere(self, needed: Role) -> bool:
        """Whether the user has a role for at least one prefix."""
        return any(role >= needed for role in self.roles.values())


class Access:
    """Authenticates requests, and authorizes them."""

    def __init__(self, users: tuple[User, ...]) -> None:
        self._users = {user.name: user for user in users}

    def user(self, header: str) -> User:
        """Authenticate the user of an `Authorization` header.

        Raises:
            HttpError: 401: the user is unknown or the password wrong.
        """
        scheme, _, encoded = header.partition(" ")
        login = _text(encoded) if scheme.lower() == "basic" else ""
        name, _, password = login.partition(":")
        known = self._users.get(name)
        expected = known.password if known else ""
        right = hmac.compare_digest(password.encode(), expected.encode())
        if known is None or not right:
            challenge = (b"www-authenticate", f'Basic realm="{REALM}"'.encode())
            raise HttpError(401, message="Unauthorized", headers=(challenge,))
        return known

    @staticmethod
    def check(user: User, route: Route, call: Call) -> None:
        """Check that a user has the role for a request.

        Raises:
            HttpError: 403: the role is missing.
        """
        if route.right is Right.NONE:
            return
        needed = _NEEDED[route.right]
        anywhere = route.right is Right.READ and "subject" not in call.path
        if not (user.may_somewhere(needed) if anywhere else user.may(needed, str(call.scope))):
            raise denied(route.right.value, call.scope)


def _text(encoded: str) -> str:
    try:
        return base64.b64decode(encoded.strip(), validate=True).decode()
    except ValueError:  # not base64, not UTF-8, or not ASCII
        return ""
