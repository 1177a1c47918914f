"""Parsed request for handlers, and types of their answers. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

from schemas.json_value import Json
from schemas.registry.limits import PAGE_MAX, SCHEMAS_MAX
from schemas.registry.names import SubjectName
from schemas.registry.prepare import LATEST
from schemas.registry.refused import BadVersionError
from schemas.rest.errors import HttpError
from schemas.types import INT_MAX

Query: TypeAlias = Sequence[tuple[str, str]]
T = TypeVar("T")
_DIGITS_MAX: Final = 11


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Args:
        path: the path parameters, by the names in the route.
        query: names and values, in their order.
        body: the JSON object of the body; empty without one.
        now_ms: time of its arrival, ms since 1970.
        reads: whether the user may read a subject.
    """

    path: Mapping[str, str]
    query: Query = ()
    body: Mapping[str, Json] = field(default_factory=dict)
    now_ms: int = 0
    reads: Callable[[SubjectName], bool] = lambda _: True

    def check_reads(self, *names: SubjectName) -> None:
        """Check that the user may read subjects.

        Raises:
            HttpError: 403: the user may not.
        """
        for name in names:
            if not self.reads(name):
                raise denied("read", name)

    def text(self, name: str, default: str = "") -> str:
        """The first value of a query parameter."""
        return next(iter(self.texts(name)), default)

    def texts(self, name: str) -> list[str]:
        """All values of a query parameter."""
        return [value for key, value in self.query if key == name]

    @property
    def parses(self) -> bool:
        """Whether the answer requires parsing schemas, which is slow."""
        return self.resolved or bool(self.texts("findTags"))

    @property
    def resolved(self) -> bool:
        """Whether schemas are requested with their references inlined."""
        return self.text("format").casefold() == "resolved"

    def flag(self, name: str) -> bool:
        """A boolean query parameter, case-insensitive; absent means false."""
        return self.text(name).casefold() == "true"

    def number(self, name: str, default: int) -> int:
        """An integer query parameter.

        Raises:
            HttpError: 404, as for a path that does not exist: it is no integer.
        """
        text = self.text(name)
        return whole(text) if text else default

    def page(self, items: Sequence[T], most: int = PAGE_MAX) -> list[T]:
        """The page of a list that `offset` and `limit` select.

        Raises:
            HttpError: one of them is no number.
        """
        offset, limit = max(0, self.number("offset", 0)), self.number("limit", -1)
        return list(items[offset : offset + (limit if 0 < limit <= most else most)])

    def schemas_page(self, items: Sequence[T]) -> list[T]:
        """The same for answers that contain schemas."""
        return self.page(items, SCHEMAS_MAX)

    @property
    def subject(self) -> SubjectName:
        """The subject in the path."""
        return SubjectName.parse(self.path["subject"])

    @property
    def scope(self) -> SubjectName:
        """The scope of a setting: the subject in the path, or the whole registry."""
        return SubjectName.parse(self.path.get("subject", ""))

    @property
    def id(self) -> int:
        """The id in the path.

        Raises:
            HttpError: 404: it is no number.
        """
        return whole(self.path["id"])

    @property
    def version(self) -> int:
        """The version number in the path; -1 for the latest.

        Raises:
            BadVersionError: it is not a valid version.
        """
        text = self.path["version"].strip()
        if text.casefold() == "latest":
            return LATEST
        try:
            number = whole(text)
        except HttpError:
            raise BadVersionError(self.path["version"]) from None
        if number == LATEST or number > 0:
            return number
        raise BadVersionError(number)


@dataclass(frozen=True, slots=True)
class Text:
    """An answer with the text of a schema as its body."""

    text: str


Answer: TypeAlias = Json | Text
NOTHING: Final = Text("")
"""An answer without a body."""


def denied(operation: str, name: SubjectName) -> HttpError:
    """The error about a missing right, with the message of Confluent's registry."""
    where = f"{operation.capitalize()} on Subject: {name}" if str(name) else "on this server."
    return HttpError(403, 40301, f"User is denied operation {where}")


def whole(text: str) -> int:
    """Parse a 32-bit integer.

    Raises:
        HttpError: 404: it is none.
    """
    digits = text.removeprefix("-")
    fits = digits.isascii() and digits.isdecimal() and len(digits) < _DIGITS_MAX
    if not fits or abs(int(text)) > INT_MAX:
        raise HttpError(404)
    return int(text)
