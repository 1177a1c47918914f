"""A reference model of a registry in plain dictionaries, written independently.

A name is a pair of context and subject, a schema one of three primitives, perhaps with an unused
reference. A refusal is its number.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

Name: TypeAlias = tuple[str, str]
Target: TypeAlias = tuple[Name, int]
Key: TypeAlias = tuple[str, Target | None]
READS = {("long", "int")}
"""New and old that fit, beside the equal ones."""
NO_SUBJECT, NO_VERSION, NO_SCHEMA = 40401, 40402, 40403
SUBJECT_GONE, SUBJECT_THERE, VERSION_GONE, VERSION_THERE = 40404, 40405, 40406, 40407
INCOMPATIBLE, BAD_SCHEMA, NOT_PERMITTED, REFERRED = 40901, 42201, 42205, 42206


class Refused(Exception):  # noqa: N818 - it is an answer
    """A refusal, by its number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass
class Entry:
    """A version."""

    id: int
    key: Key
    deleted: bool = False


@dataclass
class Model:
    """The state of a registry."""

    subjects: dict[Name, dict[int, Entry]] = field(default_factory=dict)
    ids: dict[str, dict[Key, list[int]]] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    levels: dict[Name, str] = field(default_factory=dict)
    modes: dict[Name, str] = field(default_factory=dict)

    # --- scopes ---------------------------------------------------------------------------------

    def level(self, name: Name) -> str:
        """The level in force."""
        scopes = (name, (name[0], ""), (".__GLOBAL", ""))
        return next((self.levels[one] for one in scopes if one in self.levels), "BACKWARD")

    def mode(self, name: Name) -> str:
        """The mode in force."""
        scopes = (name, (name[0], ""), (".__GLOBAL", ""))
        return next((self.modes[one] for one in scopes if one in self.modes), "READWRITE")

    def set_level(self, name: Name, level: str | None) -> None:
        """Set or remove a level."""
        if level is None and name not in self.levels and name != (".", ""):
            raise Refused(NO_SUBJECT)
        if self.mode(name) == "READONLY":
            raise Refused(NOT_PERMITTED)
        if level is None:
            self.levels.pop(name, None)
        else:
            self.levels[name] = level

    def set_mode(self, name: Name, mode: str | None) -> None:
        """Set or remove a mode."""
        if mode is None:
            self.modes.pop(name, None)
        else:
            self.modes[name] = mode

    # --- registering ----------------------------------------------------------------------------

    def register(self, name: Name, key: Key, given: int | None) -> tuple[int, int]:
        """The id and the version of a schema."""
        self._check_target(key, deleted=True)
        live = self.live(name)
        for number, one in sorted(live.items(), reverse=True):
            if one.key[0] == key[0] and given in {None, one.id}:
                return one.id, number
        mode = self.mode(name)
        if mode != ("READWRITE" if given is None else "IMPORT"):
            raise Refused(NOT_PERMITTED)
        self._check_target(key, deleted=given is not None)
        if given is None and not self.fits(name, key[0]):
            raise Refused(INCOMPATIBLE)
        return self._add(name, key, self._id(name[0], key, given))

    def fits(self, name: Name, text: str) -> bool:
        """Whether a text fits the live versions."""
        level = self.level(name)
        texts = [one.key[0] for _, one in sorted(self.live(name).items())]
        backward = level.startswith(("BACKWARD", "FULL"))
        forward = level.startswith(("FORWARD", "FULL"))
        return all(
            text == old
            or ((not backward or (text, old) in READS) and (not forward or (old, text) in READS))
            for old in (texts if level.endswith("TRANSITIVE") else texts[-1:])
        )

    def _check_target(self, key: Key, *, deleted: bool) -> None:
        if key[1] is not None:
            name, number = key[1]
            there = self.subjects.get(name, {}) if deleted else self.live(name)
            if number not in there:
                raise Refused(BAD_SCHEMA)

    def _id(self, context: str, key: Key, given: int | None) -> int:
        known = self.ids.setdefault(context, {})
        if given is None:
            if not known.get(key):
                self.last[context] = self.last.get(context, 0) + 1
                known[key] = [self.last[context]]
            return known[key][0]
        if given in known.get(key, []):
            return given
        holder = next((other for other, some in known.items() if given in some), None)
        if holder is not None:
            if any(
                one.id == given
                for name, versions in self.subjects.items()
                if name[0] == context
                for one in versions.values()
            ):
                raise Refused(NOT_PERMITTED)
            known[holder].remove(given)
        known.setdefault(key, []).append(given)
        self.last[context] = max(given, self.last.get(context, 0))
        return given

    def _add(self, name: Name, key: Key, new_id: int) -> tuple[int, int]:
        versions = self.subjects.setdefault(name, {})
        number = max(versions, default=0) + 1
        for old, one in list(versions.items()):
            if one.deleted and one.id == new_id and not self.referrers(name, old, deleted=True):
                del versions[old]
        versions[number] = Entry(new_id, key)
        return new_id, number

    # --- reading --------------------------------------------------------------------------------

    def live(self, name: Name) -> dict[int, Entry]:
        """Versions that are not deleted."""
        return {n: one for n, one in self.subjects.get(name, {}).items() if not one.deleted}

    def referrers(self, name: Name, number: int, *, deleted: bool) -> list[Name]:
        """The subjects of the versions that refer to a version."""
        return [
            other
            for other, versions in self.subjects.items()
            for one in versions.values()
            if one.key[1] == (name, number) and (deleted or not one.deleted)
        ]

    def by_id(self, context: str, number: int) -> str:
        """The text of an id."""
        for name, versions in self.subjects.items():
            for one in versions.values():
                if name[0] == context and one.id == number:
                    return one.key[0]
        raise Refused(NO_SCHEMA)

    # --- deleting -------------------------------------------------------------------------------

    def delete(self, name: Name, number: int, *, permanent: bool) -> int:
        """Delete a version."""
        versions = self.subjects.get(name, {})
        one = versions.get(number)
        if one is not None and one.deleted and not permanent:
            raise Refused(VERSION_GONE)
        if one is None:
            raise Refused(NO_VERSION if versions else NO_SUBJECT)
        if self.mode(name) == "READONLY":
            raise Refused(NOT_PERMITTED)
        if self.referrers(name, number, deleted=permanent):
            raise Refused(REFERRED)
        if permanent and not one.deleted:
            raise Refused(VERSION_THERE)
        one.deleted = True
        if permanent:
            del versions[number]
            self._forget(name)
        return number

    def delete_all(self, name: Name, *, permanent: bool) -> tuple[int, ...]:
        """Delete a subject."""
        versions, live = self.subjects.get(name, {}), self.live(name)
        if not versions:
            raise Refused(NO_SUBJECT)
        if not permanent and not live:
            raise Refused(SUBJECT_GONE)
        if self.mode(name) == "READONLY":
            raise Refused(NOT_PERMITTED)
        for number, one in sorted((versions if permanent else live).items()):
            if set(self.referrers(name, number, deleted=permanent)) - {name}:
                raise Refused(REFERRED)
            if permanent and not one.deleted:
                raise Refused(SUBJECT_THERE)
        if permanent:
            gone = tuple(sorted(versions))
            versions.clear()
            self._forget(name)
            return gone
        for one in live.values():
            one.deleted = True
        return tuple(sorted(live))

    def _forget(self, name: Name) -> None:
        if not self.subjects[name]:
            del self.subjects[name]
            self.levels.pop(name, None)
            self.modes.pop(name, None)
