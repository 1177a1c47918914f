"""Definition of an example: a project with a producer, and the expected results. Pure.

The project itself is in `pipeline/projects/<name>`, as `medusa init <name>` writes it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, field, fields, replace
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
        box: the box that writes it.
        name: for reports, in the plural.
        columns: names of the values of a row.
        identity: the columns that identify a result.
        due: the expected rows, in any order; raises `BrokenInvariantError` if the network is not
            the example's.
        text: a row in a report.
    """

    box: BoxName
    name: str
    columns: tuple[str, ...]
    identity: tuple[str, ...]
    due: Callable[[Inputs, Network], Iterable[Due]]
    text: Callable[[Row], str]


def columns_of(kind: Any) -> tuple[str, ...]:
    """The columns of a result: the fields of its dataclass."""
    return tuple(one.name for one in fields(kind))


def due_by(
    compute: Callable[[Inputs, Rules], Iterable[Any]],
    rules_of: Callable[[Network], Rules],
    event_time: str,
) -> Callable[[Inputs, Network], Iterator[Due]]:
    """The expected rows of a box, if the event time of a result is one of its columns."""

    def due(inputs: Inputs, network: Network) -> Iterator[Due]:
        for result in compute(inputs, rules_of(network)):
            yield Due(astuple(result), getattr(result, event_time))

    return due


def unchanged(document: str) -> str:
    """The project's document, unchanged."""
    return document


@dataclass(frozen=True, slots=True)
class Bounded:
    """The variant of an example whose results have an availability bound.

    Args:
        result: the output that has tentative results; only the variant has it.
        adapted: the variant's document for a short run, from that of the project.
        bound_ms: the bound.
        settle_ms: as of an example. Under a bound a partition that is silent is missing, so event
            time stops before the last record: at least by the lateness of its stream.
    """

    result: Result
    adapted: Callable[[str], str]
    bound_ms: int
    settle_ms: int


@dataclass(frozen=True, slots=True)
class Example:
    """One example.

    Args:
        name: of the project and of its network.
        summary: in one line.
        fed: name of the producer's records, in the plural.
        topic: of the most important output.
        results: every output of the network.
        feed: arguments of the producer for a short run.
        adapted: the document for a short run, from that of the project.
        settle_ms: how far event time must pass the last record before a run is checked.
        bounded: its variant with an availability bound; None: it has none.
    """

    name: str
    summary: str
    fed: str
    topic: str
    results: tuple[Result, ...]
    feed: tuple[str, ...] = ()
    adapted: Callable[[str], str] = field(default=unchanged)
    settle_ms: int = 0
    bounded: Bounded | None = None

    @property
    def with_bound(self) -> "Example":
        """The variant with an availability bound; the example itself if it has none."""
        if self.bounded is None:
            return self
        bounded = self.bounded
        results = (bounded.result, *self.results)
        return replace(self, results=results, adapted=bounded.adapted, settle_ms=bounded.settle_ms)


def clock_time(at_ms: Value) -> str:
    """The time of day of an instant, UTC."""
    if not isinstance(at_ms, int | float):
        return str(at_ms)
    return f"{_EPOCH + timedelta(milliseconds=at_ms):%H:%M:%S}"
