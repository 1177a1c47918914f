"""Streams and boxes as objects of a description, and the sheet on which they are written down."""

import re
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta

from pipeline import durations
from pipeline.builder.options import Limit, Part
from pipeline.errors import DocumentError, Problem
from pipeline.nearest import nearest_first
from pipeline.network.written import Place
from pipeline.network.yaml_reader import YamlList, YamlMap, YamlNode, YamlScalar

_PACKAGE = __name__.rpartition(".")[0]
_HALF = re.compile("[\ud800-\udfff]")

Value = object
"""What can be written: a text, a whole number, true or false, a time or length of
time, a stream, a part of `options`, or a sequence or mapping of these. None: nothing is said."""


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A stream of a network; boxes read it."""

    name: str
    sheet: "Sheet" = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class External(Stream):
    """A stream that comes from outside."""


@dataclass(frozen=True, slots=True, eq=False)
class Box(Stream):
    """A box; it is also the stream that it writes."""


class Branches(dict[str, Box]):
    """The streams that a route makes, by their names.

    Args:
        route: the route's name.
        sheet: where they are written down.
        names: of the branches.
    """

    def __init__(self, route: str, sheet: "Sheet", names: Sequence[str]) -> None:
        super().__init__((name, Box(name, sheet)) for name in names)
        self.route = route
        self.sheet = sheet

    def __missing__(self, name: str) -> Box:
        choices = nearest_first(str(name), tuple(self))
        message = f"route {self.route} has no branch {name}"
        raise self.sheet.mistake(self.sheet.call(), message, box=self.route, choices=choices)


class Sheet:
    """What a description has said so far.

    A call is known by its number, which stands where a YAML document has a line.

    Args:
        network: the network's name.
    """

    def __init__(self, network: str) -> None:
        self.network = network
        self.places: list[Place] = []
        self.sections: dict[str, list[tuple[YamlScalar, YamlNode]]] = {}
        self._first: dict[tuple[str, str], int] = {}

    def call(self) -> int:
        """Note the call that is being made; its number."""
        self.places.append(_caller())
        return len(self.places)

    def add(self, section: str, name: str, what: str, content: Mapping[str, Value]) -> None:
        """Write an entry of a section: a stream, a box or an output.

        Args:
            section: the key at the top of the document.
            name: the entry's name.
            what: what it is, for messages.
            content: its keys; what is None is left out.

        Raises:
            DocumentError: the name is no text or taken, or a value cannot be written.
        """
        call = self.call()
        if not isinstance(name, str):
            raise self.mistake(call, f"the name of a {what} must be a text, not {typed(name)}")
        first = self._first.setdefault((section, name), call)
        if first != call:
            message = f"{what} {name} is there already: {self.places[first - 1]}"
            raise self.mistake(call, message)
        key = YamlScalar(self._text(name, call, f"the name of a {what}"), call)
        node = self.node(said(content), call, f"{what} {name}")
        self.sections.setdefault(section, []).append((key, node))

    def node(self, value: Value, call: int, what: str) -> YamlNode:
        """A value as a part of the document; `what` it is, for messages."""
        if isinstance(value, Part):
            parts = {part.name: getattr(value, part.name) for part in fields(value)}
            return self.node(said(parts), call, what)
        if isinstance(value, Mapping):
            entries = (
                (
                    YamlScalar(self._name(key, call, what), call),
                    self.node(part, call, f"{key} of {what}"),
                )
                for key, part in value.items()
            )
            return YamlMap(tuple(entries), call)
        if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
            items = (self.node(item, call, f"an entry of {what}") for item in value)
            return YamlList(tuple(items), call)
        return YamlScalar(self._text(value, call, what), call)

    def _name(self, key: Value, call: int, what: str) -> str:
        if isinstance(key, str):
            return self._text(key, call, what)
        raise self.mistake(call, f"a name in {what} must be a text, not {typed(key)}")

    def _text(self, value: Value, call: int, what: str) -> str:
        match value:
            case str() if _HALF.search(value):
                raise self.mistake(call, f"{what} has half of a surrogate pair")
            case bool():
                return "true" if value else "false"
            case str() | int():
                return str(value)
            case timedelta():
                return self._duration(value, call, what)
            case datetime():
                return value.isoformat()
            case Stream():
                return value.name
        raise self.mistake(call, f"{what} cannot be {typed(value)}")

    def mistake(
        self,
        call: int,
        message: str,
        *,
        box: str = "",
        choices: tuple[str, ...] = (),
        hint: str = "",
    ) -> DocumentError:
        """What to raise for a mistake in a call that ends the description."""
        place = self.places[call - 1]
        problem = Problem(message, place.file, place.line, box, choices=choices, hint=hint)
        return DocumentError((problem,))

    def _duration(self, value: timedelta, call: int, what: str) -> str:
        ms, rest = divmod(value, timedelta(milliseconds=1))
        if ms < 0:
            raise self.mistake(call, f"{what} must not be negative")
        if rest:
            raise self.mistake(call, f"{what} must be whole milliseconds, not {value!r}")
        return durations.format(ms)


def said(content: Mapping[str, Value]) -> Mapping[str, Value]:
    """Without what was left out."""
    return {key: value for key, value in content.items() if value is not None}


def add_box(
    name: str,
    inputs: Mapping[str, Stream],
    content: Mapping[str, Value],
    *,
    key: Sequence[str] | None,
    dead_letters: Limit | None,
) -> Box:
    """Write a box on the sheet of its inputs. Every function of `boxes` ends here.

    Args:
        name: the box's name.
        inputs: the streams that it reads, by the names of the function's parameters.
        content: what the document says of it, its inputs and kind included.
        key: the columns that make the Kafka key of its output.
        dead_letters: how many of them are borne.

    Raises:
        DocumentError: an input is no stream, or belongs to another network, or there is none; or
            see `Sheet.add`.
    """
    for parameter, stream in inputs.items():
        if not isinstance(stream, Stream):
            message = f"{parameter} of box {name} must be a stream or a box, not {typed(stream)}"
            hint = "hand over what network.stream(…) or boxes.…(…) returned, not its name"
            if isinstance(stream, Branches):
                hint = f"hand over one of its branches: {stream.route}['{next(iter(stream), '')}']"
            raise mistaken(name, message, hint)
    if not inputs:
        raise mistaken(name, f"box {name} reads no stream")
    sheet, *others = (stream.sheet for stream in inputs.values())
    for other in others:
        if other is not sheet:
            raise sheet.mistake(
                sheet.call(),
                f"box {name} reads streams of two networks, {sheet.network} and {other.network}",
                box=name,
                hint="what one network puts out, the other one reads as a stream from outside",
            )
    sheet.add("boxes", name, "box", {**content, "key": key, "dead_letters": dead_letters})
    return Box(name, sheet)


def mistaken(box: str, message: str, hint: str = "") -> DocumentError:
    """What to raise for a mistake in the call of a box whose network is not known yet."""
    place = _caller()
    return DocumentError((Problem(message, place.file, place.line, box, hint=hint),))


def _caller() -> Place:
    """The line that called this package."""
    for frame, line in traceback.walk_stack(None):
        if frame.f_globals.get("__name__", "").split(".")[:_DEPTH] != _PACKAGE.split("."):
            return Place(frame.f_code.co_filename, line)
    return Place("", 0)


_DEPTH = _PACKAGE.count(".") + 1


def typed(value: object) -> str:
    """The type of a value in words: `a str`."""
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
