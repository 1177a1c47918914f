"""A registry as a pure value, and short calls for tests."""

import json
from typing import Any

from schemas.registry.config import Config, Mode
from schemas.registry.content import Reference
from schemas.registry.delete import delete_subject, delete_version
from schemas.registry.lookup import Found, lookup
from schemas.registry.names import SubjectName
from schemas.registry.prepare import Sent
from schemas.registry.register import Registered, register
from schemas.registry.state import State
from schemas.registry.tune import set_config, set_mode

NAME = SubjectName.parse
INT, LONG, STRING = '"int"', '"long"', '"string"'


def record(name: str = "R", *fields: str, **more: Any) -> str:
    """The text of a record of ints; a field `b=` has a default, `c:T` is of another type."""
    made = []
    for field in fields:
        word, _, typed = field.partition(":")
        one: dict[str, Any] = {"name": word.rstrip("="), "type": typed or "int"}
        made.append(one | ({"default": 0} if word.endswith("=") else {}))
    return json.dumps({"type": "record", "name": name, "fields": made, **more})


def to(subject: str, number: int = 1, name: str = "ref") -> Reference:
    """A reference."""
    return Reference(name, subject, number)


class RegistryValue:
    """A registry whose state is changed by the pure functions."""

    def __init__(self) -> None:
        self.state = State()

    def register(self, subject: str, sent: Sent | str, *, normal: bool = False) -> Registered:
        """Register a schema."""
        what = Sent(sent) if isinstance(sent, str) else sent
        made = register(self.state, NAME(subject), what, normal=normal, now_ms=1)
        self.state = self.state.after(made.changes)
        return made

    def at(self, subject: str, sent: Sent | str, *, normal: bool = False) -> tuple[int, int]:
        """Register a schema; its id and version."""
        made = self.register(subject, sent, normal=normal).version
        return made.id, made.number

    def lookup(self, subject: str, sent: Sent | str, *, deleted: bool = False) -> Found:
        """Look a schema up."""
        what = Sent(sent) if isinstance(sent, str) else sent
        return lookup(self.state, NAME(subject), what, normal=False, deleted=deleted)

    def delete(self, subject: str, number: int, *, permanent: bool = False) -> int:
        """Delete a version."""
        done, changes = delete_version(
            self.state, NAME(subject), number, permanent=permanent, now_ms=2
        )
        self.state = self.state.after(changes)
        return done

    def delete_all(self, subject: str, *, permanent: bool = False) -> tuple[int, ...]:
        """Delete a subject."""
        done, changes = delete_subject(self.state, NAME(subject), permanent=permanent, now_ms=2)
        self.state = self.state.after(changes)
        return done

    def configure(self, subject: str, **body: Any) -> Config:
        """Change a configuration."""
        made, changes = set_config(self.state, NAME(subject), body)
        self.state = self.state.after(changes)
        return made

    def mode(self, subject: str, mode: Mode | None, *, force: bool = True) -> None:
        """Set a mode."""
        self.state = self.state.after(set_mode(self.state, NAME(subject), mode, force=force))

    def numbers(self, subject: str, *, deleted: bool = False) -> list[int]:
        """The versions of a subject."""
        return [one.number for one in self.state.versions(NAME(subject), deleted=deleted)]
