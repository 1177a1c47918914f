"""A test from its first step to its verdict."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.counting import counted
from pipeline.testing.check import Checked
from pipeline.testing.compare import Actual, Differences, Expected, compare, in_words
from pipeline.testing.lane import StartQuery
from pipeline.testing.network import NetworkUnderTest
from pipeline.testing.steps import Advance, Expect, ExpectDeadLetters, Send, Settle, Step, Wait
from schemas.json_value import JsonObject


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed step.

    Args:
        place: the step.
        what: the stream, or `dead_letters`.
        expected: number of expected records.
        came: number of actual records.
        differences: differences from the expected records.
    """

    place: str
    what: str
    expected: int
    came: int
    differences: Differences

    def __str__(self) -> str:
        many = counted(self.expected, "record")
        first = f"{self.place}: {self.what}: {many} expected, {self.came:,} came"
        return "\n".join([first, *(f"  {line}" for line in in_words(self.differences))])

    def as_data(self) -> JsonObject:
        """The same for programs."""
        found = self.differences
        return {
            "place": self.place,
            "stream": self.what,
            "expected": self.expected,
            "came": self.came,
            "different": [
                {
                    "place": pair.expected.place,
                    "fields": list(pair.fields),
                    "expected": pair.expected.shown,
                    "came": pair.came.shown,
                }
                for pair in found.different
            ],
            "missing": [{"place": e.place, "expected": e.shown} for e in found.missing],
            "unexpected": [c.shown for c in found.unexpected],
            "early": None if found.early is None else found.early.place,
        }


def run_steps(test: Checked, start: StartQuery, place: str) -> tuple[Failure, ...]:
    """Run a test; returns its failures in the order of its steps.

    A step that fails does not end the test. Dead letters that no step expects are a failure.

    Args:
        test: the test.
        start: starts a query.
        place: the test's own, for failures of no step.

    Raises:
        MedusaError: a lane failed.
    """
    network = NetworkUnderTest(test, start)
    try:
        failures = [f for step in test.steps for f in run_step(step, network)]
        return (*failures, *run_step(ExpectDeadLetters((), place), network))
    finally:
        network.close()


def run_step(step: Step, network: NetworkUnderTest) -> Iterator[Failure]:
    """Run one step; returns its failures.

    Raises:
        MedusaError: a lane failed.
    """
    match step:
        case Send(stream, records):
            network.send(stream, records)
        case Advance(to_ms):
            network.advance(to_ms)
        case Wait(ms):
            network.wait(ms)
        case Settle():
            network.settle()
        case Expect(stream, expected, in_order, place):
            came = network.take(stream)
            found = compare(expected, came, in_order=in_order)
            yield from _failures(place, stream, expected, came, found)
        case ExpectDeadLetters(expected, place):
            came = network.take_dead_letters()
            yield from _failures(place, "dead_letters", expected, came, compare(expected, came))


def _failures(
    place: str, what: str, expected: Sequence[Expected], came: Sequence[Actual], found: Differences
) -> Iterator[Failure]:
    if found:
        yield Failure(place, what, len(expected), len(came), found)
