"""Streams and boxes of a description, and the document draft that records them."""

import re
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta

from pipeline import durations
from pipeline.builder.options import (
    Availability,
    Duration,
    Limit,
    Part,
    Placement,
    PriorityLevel,
    Reliability,
    ReliabilityMode,
    Size,
)
from pipeline.errors import DocumentError, Problem
from pipeline.nearest import nearest_first
from pipeline.network.written import Place
from pipeline.yaml_reader import YamlList, YamlMap, YamlNode, YamlScalar

_PACKAGE = __name__.rpartition(".")[0]
_HALF = re.compile("[\ud800-\udfff]")

Value = object
"""A value that can be written: a text, a whole number, true or false, a time or a duration, a
stream, a part of `options`, or a sequence or mapping of these. None: left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A stream of a network; boxes read it."""

    name: str
    draft: "DocumentDraft" = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class External(Stream):
    """An external stream."""


@dataclass(frozen=True, slots=True, eq=False)
class Box(Stream):
    """A box; it is also the stream that it writes."""


class Branches(dict[str, Box]):
    """The output streams of a route, by name.

    Args:
        route: the route's name.
        draft: the draft of the document.
        names: of the branches.
    """

    def __init__(self, route: str, draft: "DocumentDraft", names: Sequence[str]) -> None:
        super().__init__((name, Box(name, draft)) for name in names)
        self.route = route
        self.draft = draft

    def __missing__(self, name: str) -> Box:
        choices = nearest_first(str(name), tuple(self))
        message = f"route {self.route} has no branch {name}"
        raise self.draft.mistake(self.draft.call(), message, box=self.route, choices=choices)


class DocumentDraft:
    """Draft of the document of a description.

    The number of a call takes the place of the line number in a YAML document.

    Args:
        network: the network's name.
    """

    def __init__(self, network: str) -> None:
        self.network = network
        self.places: list[Place] = []
        self.sections: dict[str, list[tuple[YamlScalar, YamlNode]]] = {}
        self._first: dict[tuple[str, str], int] = {}

    def call(self) -> int:
        """Record the current call; returns its number."""
        self.places.append(_caller())
        return len(self.places)

    def add(self, section: str, name: str, what: str, content: Mapping[str, Value]) -> None:
        """Add an entry to a section: a stream, a box or an output.

        Args:
            section: the top-level key of the document.
            name: the entry's name.
            what: what it is, for messages.
            content: its keys; None values are left out.

        Raises:
            DocumentError: the name is not a text or is taken, or a value cannot be written.
        """
        call = self.call()
        if not isinstance(name, str):
            raise self.mistake(call, f"the name of a {what} must be a text, not {typed(name)}")
        first = self._first.setdefault((section, name), call)
        if first != call:
            raise self.mistake(call, f"{what} {name} is there already: {self.places[first - 1]}")
        key = YamlScalar(self._text(name, call, f"the name of a {what}"), call)
        node = self.node(present(content), call, f"{what} {name}")
        self.sections.setdefault(section, []).append((key, node))

    def node(self, value: Value, call: int, what: str) -> YamlNode:
        """A value as a node of the document; `what` it is, for messages."""
        if isinstance(value, Part):
            parts = {part.name: getattr(value, part.name) for part in fields(value)}
            return self.node(present(parts), call, what)
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
        """The error of a mistake in a call that ends the description."""
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


def present(content: Mapping[str, Value]) -> Mapping[str, Value]:
    """The entries that are not left out."""
    return {key: value for key, value in content.items() if value is not None}


def add_box(
    name: str,
    inputs: Mapping[str, Stream],
    content: Mapping[str, Value],
    *,
    key: Sequence[str] | None,
    dead_letters: Limit | None,
    pace: Duration | None,
    state_limit: Size | None = None,
    placement: Placement | None = None,
    reliability: Reliability | ReliabilityMode | None = None,
    priority: PriorityLevel | None = None,
    availability: Availability | Duration | None = None,
) -> Box:
    """Add a box to the draft of its inputs. Called by every function of `boxes`.

    Args:
        name: the box's name.
        inputs: the streams that it reads, by the names of the function's parameters.
        content: its entry in the document, inputs and kind included.
        key: the columns that make the Kafka key of its output.
        dead_letters: how many of them are accepted.
        pace: the least time between two batches.
        state_limit: the size of the state at which no more input is read.
        placement: the nodes that it may run on.
        reliability: how another node goes on if its own one fails.
        priority: whether it runs if there is not room for all.
        availability: when tentative results are preferred to none.

    Raises:
        DocumentError: an input is not a stream, or is one of another network, or there is none;
            or see `DocumentDraft.add`.
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
    draft, *others = (stream.draft for stream in inputs.values())
    for other in others:
        if other is not draft:
            raise draft.mistake(
                draft.call(),
                f"box {name} reads streams of two networks, {draft.network} and {other.network}",
                box=name,
                hint="what one network puts out, the other one reads as a stream from outside",
            )
    common = {
        "key": key,
        "dead_letters": dead_letters,
        "pace": pace,
        "state_limit": state_limit,
        "placement": placement,
        "reliability": reliability,
        "priority": priority,
        "availability": availability,
    }
    draft.add("boxes", name, "box", {**content, **common})
    return Box(name, draft)


def mistaken(box: str, message: str, hint: str = "") -> DocumentError:
    """The error of a mistake in the call of a box whose network is unknown yet."""
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
