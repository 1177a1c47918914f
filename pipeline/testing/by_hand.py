"""The steps of a test as calls: what the pytest fixture gives."""

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
    ExpectWritten,
    LettersWritten,
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
"""A record as JSON has it; times may also be `datetime`, decimals `Decimal`."""


class TestedNetwork:
    """A network under test, told in Python what a test document tells in YAML."""

    __test__ = False  # pytest takes what is called Test… for tests

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
            test: who tests, for messages.
            start: starts a query.
            looked_at: boxes inside of fragments whose records the test takes.
            partitions: of streams from outside that have more than one.
            schemas: files with the schemas of subjects that the network names.

        Raises:
            DocumentError: every mistake in the document.
            InputError: a file cannot be read.
            UsageError: a stream or box that is named does not exist.
        """
        network = read_network(file, dict(schemas or {}), test).network
        boxes = [box.name for box in network.boxes]
        streams = streams_of(network, [_known(name, boxes) for name in looked_at])
        counts = {
            streams.topics[_known(name, streams.external)]: count
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
        """Send records to a stream, and let them be computed.

        Args:
            stream: one that comes from outside.
            records: in the order in which they come.
            key: the field that makes the Kafka key.
            partition: where they come.
            timestamp: their Kafka timestamp; without it, no event time is ahead of them.
        """
        at_ms = None if timestamp is None else time_of(str(timestamp))
        named = None if key is None else Text(key, 0)
        self._do(SendWritten(Text(stream, 0), _records(records), named, partition, at_ms))

    def advance(self, to: str | datetime) -> None:
        """Let event time move on: nothing that comes from outside is at or below it any more."""
        self._do(Advance(time_of(str(to))))

    def wait(self, length: str) -> None:
        """Let time pass in which nothing comes, such as `30s`."""
        try:
            self._do(Wait(durations.parse(length)))
        except ValueError as error:
            raise UsageError(str(error)) from error

    def settle(self) -> None:
        """Let event time move on until nothing is kept any more."""
        self._do(Settle())

    def take(self, stream: str) -> list[JsonRecord]:
        """What came of a stream since the last look, as JSON, in the order of its topic.

        Raises:
            UsageError: there is none of that name.
        """
        found = self._network.take(_known(stream, self._checker.streams.derived))
        return [came.shown for came in found]

    def take_dead_letters(self) -> list[JsonRecord]:
        """The dead letters that came since the last look."""
        return [came.shown for came in self._network.take_letters()]

    def expect(self, stream: str, records: Sequence[JsonRecord], *, in_order: bool = False) -> None:
        """Compare what came of a stream since the last look; fields that are left out match.

        Raises:
            AssertionError: what is different, in words.
        """
        self._do(ExpectWritten(Text(stream, 0), _records(records), in_order, 0))

    def expect_dead_letters(self, letters: Sequence[JsonRecord]) -> None:
        """The same with dead letters.

        Raises:
            AssertionError: what is different, in words.
        """
        self._do(LettersWritten(_records(letters).written, 0))

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


def _known(name: str, names: Iterable[str]) -> StreamName:
    """A name, if it is one of some.

    Raises:
        UsageError: it is none of them.
    """
    known = tuple(names)
    if name not in known:
        there = ", ".join(nearest_first(name, known))
        raise UsageError(f"there is no {name}", hint=f"there is: {there}.")
    return StreamName(name)


def _records(given: Sequence[JsonRecord]) -> Records:
    return Records(tuple(Written(_as_json(record), 0) for record in given), None)


def _as_json(value: Any) -> Any:
    """What JSON would have in its place, where it has something."""
    if isinstance(value, Mapping):
        return {name: _as_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(part) for part in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value
