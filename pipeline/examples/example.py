"""What an example is: a project with a producer, and what has to come of everything it sends. Pure.

The project itself lies in `pipeline/projects/<name>`, as `medusa init <name>` writes it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from pipeline.ids import BoxName
from pipeline.network.model import Network
from pipeline.reference.compare import Row, Value
from pipeline.reference.inputs import Due, Inputs

Rules = TypeVar("Rules")
"""The times of a network that the reference computes with."""

DOCUMENT = "network.yaml"
PRODUCER = "producer.py"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Result:
    """One output of a network.

    Args:
        box: the one that writes it.
        name: for people, in the plural.
        columns: what the values of a row are.
        identity: the columns that say which result it is; the others say what it says.
        due: the rows that have to come out, in any order; raises `BrokenInvariantError` if the
            network is not the one that it knows.
        tell: a row for people.
    """

    box: BoxName
    name: str
    columns: tuple[str, ...]
    identity: tuple[str, ...]
    due: Callable[[Inputs, Network], Iterable[Due]]
    tell: Callable[[Row], str]


def columns_of(kind: Any) -> tuple[str, ...]:
    """The columns of a result, which are the fields of its dataclass."""
    return tuple(one.name for one in fields(kind))


def due_by(
    compute: Callable[[Inputs, Rules], Iterable[Any]],
    rules_of: Callable[[Network], Rules],
    event_time: str,
) -> Callable[[Inputs, Network], Iterator[Due]]:
    """What has to come out of a box, where the event time of a result is one of its columns."""

    def due(inputs: Inputs, network: Network) -> Iterator[Due]:
        for result in compute(inputs, rules_of(network)):
            yield Due(astuple(result), getattr(result, event_time))

    return due


def unchanged(document: str) -> str:
    """The project's document as it is."""
    return document


@dataclass(frozen=True, slots=True)
class Example:
    """One example.

    Args:
        name: of the project and of its network.
        summary: in one line.
        fed: what its producer sends, in the plural.
        topic: of the output to look at first.
        results: every output of the network.
        feed: arguments of the producer for a run that shall not take long.
        adapted: the document for such a run, from that of the project.
        settle_ms: how far beyond the last record event time has to come before a run is judged.
    """

    name: str
    summary: str
    fed: str
    topic: str
    results: tuple[Result, ...]
    feed: tuple[str, ...] = ()
    adapted: Callable[[str], str] = field(default=unchanged)
    settle_ms: int = 0


def clock_time(at_ms: Value) -> str:
    """The time of day of an instant, UTC."""
    if not isinstance(at_ms, int | float):
        return str(at_ms)
    return f"{_EPOCH + timedelta(milliseconds=at_ms):%H:%M:%S}"
