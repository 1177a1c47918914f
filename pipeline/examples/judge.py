"""Judges a run: every result beside the reference, every dead letter beside its record. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from pipeline.errors import BrokenInvariantError
from pipeline.examples.example import Result
from pipeline.ids import Millis
from pipeline.lanes.dead_letters import LATENESS
from pipeline.network.model import ExternalStream, Network
from pipeline.planner.plan import Plan
from pipeline.reference.compare import Comparison, Row, compare
from pipeline.reference.inputs import Given, Inputs, Place, Refusal


def compared(
    result: Result, inputs: Inputs, network: Network, rows: Iterable[Row], until_ms: Millis
) -> Comparison:
    """All rows that came beside those that the reference computes.

    Args:
        result: which output.
        inputs: what was given, and what was refused.
        network: the one that ran.
        rows: what came.
        until_ms: up to when the output is complete. What is due later may still be missing, but
            what came of it has to be right as well.
    """
    came = list(rows)
    required: Counter[Row] = Counter()
    later: Counter[Row] = Counter()
    for due in result.due(inputs, network):
        (required if due.at_ms <= until_ms else later)[due.row] += 1
    early = later & (Counter(came) - required)
    return compare(
        result.name, result.columns, result.identity, (required + early).elements(), came
    )


def newest_ms(given: Mapping[str, tuple[Given, ...]], network: Network) -> Millis:
    """The largest event time of all records; 0 if there is none."""
    times = (
        _event_time_ms(record, stream)
        for stream in network.streams
        for record in given[stream.name]
    )
    return Millis(max((at_ms for at_ms in times if at_ms is not None), default=0))


@dataclass(frozen=True)
class Letters:
    """Dead letters beside the records that they are about."""

    inputs: Inputs
    network: Network
    plan: Plan

    def wrong(self) -> Iterator[str]:
        """Everything that should not have been refused, and what should have been, in words."""
        for refusal in self.inputs.refusals:
            if (fault := self._fault(refusal)) is not None:
                yield f"{fault}: {refusal.text}"
        refused = {(refusal.fragment, refusal.place) for refusal in self.inputs.refusals}
        for fragment in self.plan.fragments:
            for source in fragment.inputs:
                for given in self.inputs.given.get(source.name, ()):
                    if given.fields is None and (fragment.name, given.place) not in refused:
                        yield f"{given.place} cannot be read, and {fragment.name} took it"

    def _fault(self, refusal: Refusal) -> str | None:
        if refusal.place is None:
            return "a result could not be computed"
        if refusal.place not in self._known:
            return "no record that was sent"
        given, behind_ms, stream = self._known[refusal.place]
        if given.fields is None:
            return None
        if refusal.reason not in LATENESS:
            return "a good record was refused"
        return "a record in time was called late" if behind_ms <= stream.lateness_ms else None

    @cached_property
    def _known(self) -> Mapping[Place, tuple[Given, int, ExternalStream]]:
        """Every record that was sent, and how far it was behind its partition, in ms."""
        found = {}
        for stream in self.network.streams:
            newest: dict[int, int] = {}
            for given in self.inputs.given[stream.name]:
                at_ms = _event_time_ms(given, stream)
                behind_ms = 0
                if at_ms is not None:
                    partition = given.place.partition
                    newest[partition] = max(newest.get(partition, at_ms), at_ms)
                    behind_ms = newest[partition] - at_ms
                found[given.place] = (given, behind_ms, stream)
        return found


def _event_time_ms(given: Given, stream: ExternalStream) -> int | None:
    """When a record happened; None if that cannot be read.

    Raises:
        BrokenInvariantError: event time of the stream is no column.
    """
    column = stream.event_time_column
    if column is None:
        raise BrokenInvariantError(f"event time of {stream.name} is not a column as it stands")
    at_ms = given.fields.get(column) if given.fields is not None else None
    return at_ms if isinstance(at_ms, int) else None
