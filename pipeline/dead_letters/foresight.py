"""Prediction of lateness: whether a dead letter would be late if it were redriven now. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pipeline.boundaries.windows import final_end
from pipeline.dead_letters.letter import Letter
from pipeline.ids import BoxName, Millis
from pipeline.markers.commit_marker import CommitMarker
from pipeline.network.boxes.shape import Shape, Stateless, Windowed
from pipeline.network.model import ExternalStream
from pipeline.planner.plan import Fragment, FragmentInput
from pipeline.planner.rename_columns import plain_column
from schemas.avro import AvroSchema, parse
from schemas.logical import Native

Decode = Callable[[Letter, AvroSchema], Mapping[str, Native] | None]
"""Decodes the record of a dead letter with a reader schema; None: it cannot be decoded."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = _EPOCH.resolution * 1_000


@dataclass(frozen=True, slots=True)
class Closed:
    """Closed event time of a fragment.

    Args:
        box: the stateful box; its windows or rows determine what is late.
        shape: its computation; no record is late in a fragment without state.
        closed_ms: the event time up to which windows and rows are closed; None: nothing is.
        inputs: source id → input.
    """

    box: BoxName
    shape: Shape = field(default_factory=Stateless)
    closed_ms: Millis | None = None
    inputs: Mapping[str, FragmentInput] = field(default_factory=dict)

    def would_be_late(self, letter: Letter, decode: Decode) -> bool | None:
        """Whether the record would be late; None: its event time is unknown here.

        The row of an as-of join is not: its table version is decided, so it is not buffered.
        """
        decided = letter.row is not None
        if isinstance(self.shape, Stateless) or self.closed_ms is None or decided:
            return False
        stream = self.inputs.get(letter.source)
        at_ms = None if stream is None else _event_time(letter, stream, decode)
        if at_ms is None:
            return None
        if isinstance(self.shape, Windowed):
            at_ms = final_end(self.shape.window, at_ms)
        return at_ms <= self.closed_ms


def closed(fragment: Fragment, marker: CommitMarker | None) -> Closed:
    """Closed event time of a fragment, by its last commit marker; None: it has never run."""
    box = fragment.stateful_box
    if box is None or marker is None:
        return Closed(BoxName(fragment.name))
    streams = {stream.name: stream for stream in fragment.inputs}
    inputs = {str(one.id): streams[one.name] for one in marker.sources if one.name in streams}
    return Closed(box.name, fragment.shape, marker.eviction_ms, inputs)


def _event_time(letter: Letter, stream: FragmentInput, decode: Decode) -> Millis | None:
    """Event time: the Kafka timestamp in a derived stream, else the event-time column."""
    if not isinstance(stream, ExternalStream):
        return letter.timestamp_ms
    if letter.event_time_ms is not None:
        return letter.event_time_ms
    column = plain_column(stream.event_time)
    record = None if column is None else decode(letter, parse(stream.schema_json))
    at = None if record is None or column is None else record.get(column.name)
    return Millis((at - _EPOCH) // _MILLISECOND) if isinstance(at, datetime) else None
