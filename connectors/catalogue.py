"""The list of kinds of connectors: those that come with Medusa, and those of other packages.

Another package adds one by an entry point of the group `medusa.connectors`; its value is a `Kind`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TypeAlias

from connectors.guarantee import Guarantee
from connectors.sink import Sink
from connectors.source import Source
from pipeline.clock import Clock
from pipeline.errors import InputError
from pipeline.ids import ConnectorName
from schemas.avro import AvroSchema
from schemas.json_value import JsonObject

GROUP = "medusa.connectors"


@dataclass(frozen=True, slots=True)
class Context:
    """What a connector is made of, besides its options.

    Args:
        folder: relative paths begin here.
        clock: of waits and deadlines.
        schema: of the records of the topic; None: a source is to show what it has.
        connector: its name, by which a target tells several apart.
    """

    folder: Path
    clock: Clock
    schema: AvroSchema | None
    connector: ConnectorName


MakeSource: TypeAlias = Callable[[JsonObject, Context], Source]
"""Makes a source of its options; raises `InputError` if they are wrong."""
MakeSink: TypeAlias = Callable[[JsonObject, Context], Sink]
"""Makes a sink of its options; raises `InputError` if they are wrong."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of connector.

    Args:
        name: what users call it.
        summary: in one line.
        guarantee: what its tests have shown.
        needs: what the other end has to provide, a sentence each.
        source: makes one; None: it is none.
        sink: makes one; None: it is none.
    """

    name: str
    summary: str
    guarantee: Guarantee
    needs: tuple[str, ...]
    source: MakeSource | None = None
    sink: MakeSink | None = None

    @property
    def direction(self) -> str:
        """`source`, `sink`, or both."""
        found = [name for name in ("source", "sink") if getattr(self, name) is not None]
        return " and ".join(found)


def with_others(own: Iterable[Kind], found: Iterable[EntryPoint]) -> Mapping[str, Kind]:
    """The kinds by name.

    Args:
        own: those of Medusa.
        found: entry points of other packages.

    Raises:
        InputError: an entry point cannot be loaded, is no `Kind`, or has the name of another.
    """
    kinds = {kind.name: kind for kind in own}
    for point in found:
        place = f"entry point {point.name} = {point.value}"
        try:
            kind = point.load()
        except Exception as error:  # the code of another package
            raise InputError(
                f"the connector cannot be loaded: {error}",
                place=place,
                hint="repair or uninstall the package that declares it.",
            ) from error
        if not isinstance(kind, Kind):
            raise InputError("the value is no Kind of a connector", place=place)
        if kind.name in kinds:
            raise InputError(f"there is another connector {kind.name}", place=place)
        kinds[kind.name] = kind
    return dict(sorted(kinds.items()))


def others() -> tuple[EntryPoint, ...]:
    """The entry points of installed packages."""
    return tuple(entry_points(group=GROUP))
