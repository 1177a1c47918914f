"""Python interface of a test: its steps as method calls; returned by the pytest fixture."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from pipeline import durations
from pipeline.errors import UsageError
from pipeline.ids import StreamName
from pipeline.nearest import nearest_first
from pipeline.network.fields import Text
from pipeline.testing.check import Checked, Checker, streams_of
from pipeline.testing.document import (
    DeadLettersWritten,
    ExpectWritten,
    Records,
    SendWritten,
    StepWritten,
    Written,
    time_of,
)
from pipeline.testing.lane import StartQuery
from pipeline.testing.load import read_network
from pipeline.testing.network import NetworkUnderTest
from pipeline.testing.run import run_step
from pipeline.testing.steps import Advance, Settle, Wait

JsonRecord = Mapping[str, Any]
"""A record as JSON; times may also be `datetime`, decimals `Decimal`."""


class TestedNetwork:
    """A network under test; its methods correspond to the steps of a test document."""

    __test__ = False  # pytest collects classes named Test…

    def __init__(
        self,
        file: Path,
        test: str,
        start: StartQuery,
        *,
        looked_at: Sequence[str] = (),
        partitions: Mapping[str, int] | None = None,
        schemas: Mapping[str, Path] | None = None,
    ) -> None:
        """Read and start a network.

        Args:
            file: its document.
            test: name of the test, for messages.
            start: starts a query.
            looked_at: boxes inside fragments whose records the test reads.
            partitions: of external streams with more than one.
            schemas: schema files of the subjects that the network names.

        Raises:
            DocumentError: every mistake in the document.
            InputError: a file cannot be read.
            UsageError: a named stream or box does not exist.
        """
        network = read_network(file, dict(schemas or {}), test).network
        boxes = [box.name for box in network.boxes]
        streams = streams_of(network, [_checked_name(name, boxes) for name in looked_at])
        counts = {
            streams.topics[_checked_name(name, streams.external)]: count
            for name, count in (partitions or {}).items()
        }
        self._checker = Checker(
            test, network, streams, lambda name: (file.parent / name).read_bytes()
        )
        self._network = NetworkUnderTest(
            Checked(streams, self._checker.schemas, {}, counts, ()), start
        )

    def send(
        self,
        stream: str,
        records: Sequence[JsonRecord],
        *,
        key: str | None = None,
        partition: int = 0,
        timestamp: str | datetime | None = None,
    ) -> None:
        """Send records to a stream, and compute the results.

        Args:
            stream: an external one.
            records: in the order of the topic.
            key: the field that makes the Kafka key.
            partition: the partition of the topic.
            timestamp: their Kafka timestamp; without it, no event time is ahead of them.
        """
        at_ms = None if timestamp is None else time_of(str(timestamp))
        named = None if key is None else Text(key, 0)
        self._do(SendWritten(Text(stream, 0), _records(records), named, partition, at_ms))

    def advance(self, to: str | datetime) -> None:
        """Advance event time: no later record of an external stream is at or below `to`."""
        self._do(Advance(time_of(str(to))))

    def wait(self, length: str) -> None:
        """Let time pass without records, such as `30s`."""
        try:
            self._do(Wait(durations.parse(length)))
        except ValueError as error:
            raise UsageError(str(error)) from error

    def settle(self) -> None:
        """Advance event time until no state is left."""
        self._do(Settle())

    def take(self, stream: str) -> list[JsonRecord]:
        """The records of a stream since the last call, as JSON, in the order of its topic.

        Raises:
            UsageError: there is none of that name.
        """
        found = self._network.take(_checked_name(stream, self._checker.streams.derived))
        return [came.shown for came in found]

    def take_dead_letters(self) -> list[JsonRecord]:
        """The dead letters since the last call."""
        return [came.shown for came in self._network.take_dead_letters()]

    def expect(self, stream: str, records: Sequence[JsonRecord], *, in_order: bool = False) -> None:
        """Compare the records of a stream since the last call; fields not named match.

        Raises:
            AssertionError: the differences, in words.
        """
        self._do(ExpectWritten(Text(stream, 0), _records(records), in_order, 0))

    def expect_dead_letters(self, letters: Sequence[JsonRecord]) -> None:
        """The same for dead letters.

        Raises:
            AssertionError: the differences, in words.
        """
        self._do(DeadLettersWritten(_records(letters).written, 0))

    def close(self) -> None:
        """End its queries."""
        self._network.close()

    def _do(self, written: StepWritten) -> None:
        failures = [
            failure
            for step in self._checker.steps((written,))
            for failure in run_step(step, self._network)
        ]
        if failures:
            raise AssertionError("\n".join(str(failure) for failure in failures))


def _checked_name(name: str, names: Iterable[str]) -> StreamName:
    """A name, if it is one of the given ones.

    Raises:
        UsageError: it is not.
    """
    choices = tuple(names)
    if name not in choices:
        nearest = ", ".join(nearest_first(name, choices))
        raise UsageError(f"there is no {name}", hint=f"there is: {nearest}.")
    return StreamName(name)


def _records(given: Sequence[JsonRecord]) -> Records:
    return Records(tuple(Written(_as_json(record), 0) for record in given), None)


def _as_json(value: Any) -> Any:
    """The JSON equivalent of a value, if there is one."""
    if isinstance(value, Mapping):
        return {name: _as_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(part) for part in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value
