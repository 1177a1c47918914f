"""Checks of a run: results against the reference, dead letters against their records. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from pipeline.errors import BrokenInvariantError
from pipeline.examples.example import Result
from pipeline.ids import Millis
from pipeline.lanes.dead_letter_reasons import LATENESS
from pipeline.network.model import ExternalStream, Network
from pipeline.planner.plan import Plan
from pipeline.reference.compare import Comparison, Row, compare
from pipeline.reference.inputs import InputRecord, Inputs, Place, Refusal


def compared(
    result: Result, inputs: Inputs, network: Network, rows: Iterable[Row], until_ms: Millis
) -> Comparison:
    """The comparison of an output with the reference.

    Args:
        result: the output.
        inputs: all input records, and the refused ones.
        network: the deployed network.
        rows: the recorded rows.
        until_ms: up to when the output is complete. Later expected rows may be missing, but
            recorded ones have to be right as well.
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


def newest_ms(given: Mapping[str, tuple[InputRecord, ...]], network: Network) -> Millis:
    """The largest event time of all records; 0 if there is none."""
    times = (
        _event_time_ms(record, stream)
        for stream in network.streams
        for record in given[stream.name]
    )
    return Millis(max((at_ms for at_ms in times if at_ms is not None), default=0))


@dataclass(frozen=True)
class DeadLetterCheck:
    """Comparison of dead letters with their records."""

    inputs: Inputs
    network: Network
    plan: Plan

    def wrong(self) -> Iterator[str]:
        """All wrongly refused and wrongly accepted records, in words."""
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
    def _known(self) -> Mapping[Place, tuple[InputRecord, int, ExternalStream]]:
        """Every sent record, and how far it was behind its partition, in ms."""
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


def _event_time_ms(given: InputRecord, stream: ExternalStream) -> int | None:
    """The event time of a record; None if it is unreadable.

    Raises:
        BrokenInvariantError: event time of the stream is no column.
    """
    column = stream.event_time_column
    if column is None:
        raise BrokenInvariantError(f"event time of {stream.name} is not a column as it stands")
    at_ms = given.fields.get(column) if given.fields is not None else None
    return at_ms if isinstance(at_ms, int) else None
