"""What of a fragment decides how its event time moves: its inputs and the box that keeps state."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pipeline.errors import BrokenInvariantError
from pipeline.ids import FragmentName, StreamName, TopicId, TopicName
from pipeline.names import FragmentNames
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.as_of import AsOf
from pipeline.network.boxes.deduplicate import Deduplicate
from pipeline.network.boxes.join import Join
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.sides import How
from pipeline.network.boxes.top import Top
from pipeline.network.boxes.windows import Window
from pipeline.network.model import ExternalStream, Load, Silence
from pipeline.planner.plan import Fragment, FragmentInput


@dataclass(frozen=True, slots=True)
class ExternalInput:
    """An input whose producers are not ours: event time follows what was seen of each partition.

    `partitions` is what the plan says; a lane goes by the partitions that it really reads.
    """

    stream: StreamName
    topic: TopicName
    partitions: int
    lateness_ms: int
    idle_after_ms: int
    silence: Silence
    load: Load = Load.ALONG


@dataclass(frozen=True, slots=True)
class DerivedInput:
    """An input that a fragment writes: event time follows the boundaries of that one `writer`.

    Args:
        stream: its name in the plan.
        topic: its topic.
        partitions: what the plan says; a lane goes by the partitions that it really reads.
        writer: the writer of boundaries that count.
        topic_id: Kafka's id of the topic when the network was deployed. Boundaries of a topic with
            another id do not count; empty: none counts.
        lateness_ms: by how much at least its boundary is behind what was seen of its sources.
    """

    stream: StreamName
    topic: TopicName
    partitions: int
    writer: str
    topic_id: TopicId
    lateness_ms: int = 0


_SIDES = ("left", "right")
_NO_IDS: Final[Mapping[TopicName, str]] = MappingProxyType({})

LaneInput = ExternalInput | DerivedInput


@dataclass(frozen=True, slots=True)
class Stateless:
    """Filters and maps only: nothing is kept from one batch to the next."""


@dataclass(frozen=True, slots=True)
class Windowed:
    """An aggregate over windows, or the top rows of them."""

    window: Window


@dataclass(frozen=True, slots=True)
class Sessions:
    """An aggregate over sessions."""

    window: SessionWindow


@dataclass(frozen=True, slots=True)
class Joined:
    """A join within a time bound, or with what a table said.

    Args:
        span_ms: how far before the watermark a row may lie that still counts: one that waits for
            partners, or one that was the partner of a row that waits. Never negative.
        behind_ms: how far behind the watermark the output is complete: rows without a partner may
            be waiting there. 0 if the join has none.
        lets_go: whether there are rows that come out because event time has passed them, beside
            those that come because a partner did.
        passing: inputs of which nothing but what waits is kept: a row that event time has passed
            counts for no other one.
    """

    span_ms: int
    behind_ms: int = 0
    lets_go: bool = False
    passing: frozenset[StreamName] = frozenset()


Shape = Stateless | Windowed | Sessions | Joined


@dataclass(frozen=True, slots=True)
class LaneProfile:
    """Everything that the rules of event time need to know of a fragment."""

    inputs: tuple[LaneInput, ...]
    shape: Shape


def reach_ms(shape: Shape, of: StreamName) -> int:
    """How far before its own event time a result may reach into an input for what it is made of."""
    match shape:
        case Stateless():
            return 0
        case Windowed(window):
            return window.size_ms
        case Sessions(window):
            return window.gap_ms + window.longest_ms
        case Joined(span_ms, _, _, passing):
            return 0 if of in passing else span_ms


def profile(fragment: Fragment, topic_ids: Mapping[TopicName, str] = _NO_IDS) -> LaneProfile:
    """Read a fragment's profile.

    Args:
        fragment: as planned.
        topic_ids: Kafka's ids of its topics at deploy; needed where boundaries are read.

    Raises:
        BrokenInvariantError: the stateful box is of a kind for which there is no rule.
    """
    return LaneProfile(
        inputs=tuple(_input(fragment.names, stream, topic_ids) for stream in fragment.inputs),
        shape=_shape(fragment),
    )


def _input(
    names: FragmentNames, stream: FragmentInput, topic_ids: Mapping[TopicName, str]
) -> LaneInput:
    if isinstance(stream, ExternalStream):
        return ExternalInput(
            stream=stream.name,
            topic=stream.topic,
            partitions=stream.partitions,
            lateness_ms=stream.lateness_ms,
            idle_after_ms=stream.idle_after_ms,
            silence=stream.silence,
            load=stream.load,
        )
    # A fragment is named after its last box, and a box's stream carries the box's name.
    writer = FragmentNames(names.owner, names.network, FragmentName(stream.name)).writer
    topic_id = TopicId(topic_ids.get(stream.topic, ""))
    return DerivedInput(
        stream.name, stream.topic, stream.partitions, writer, topic_id, stream.lateness_ms
    )


def _shape(fragment: Fragment) -> Shape:
    box = fragment.stateful_box
    match box:
        case None:
            return Stateless()
        case Aggregate(window=window):
            return Sessions(window) if isinstance(window, SessionWindow) else Windowed(window)
        case Top():
            return Windowed(box.window)
        case Join():
            return _joined(box)
        case Deduplicate():  # of rows from t - within to t, as of a left join with them
            return Joined(box.within_ms, behind_ms=1, lets_go=True)
        case AsOf():  # a row comes when no version for it can come any more: all up to its time
            sources = {p: {w.source for w in fragment.ways if w.port == p} for p in _SIDES}
            rows_alone = frozenset(sources["left"] - sources["right"])
            return Joined(box.within_ms, lets_go=True, passing=rows_alone)
        case _:
            message = f"there is no rule for how event time moves through a box of kind {box.kind}"
            raise BrokenInvariantError(message, place=f"box {box.name}")


def _joined(box: Join) -> Joined:
    """A left row at t waits for right ones up to t - lower, a right one for left up to t + upper.

    So a watermark of w has let go the left rows below w + lower, and the right ones below w -
    upper. One that is still there has had its partners from upper - lower before itself on.
    """
    lower, upper = box.bound.lower_ms, box.bound.upper_ms
    left, right = 1 - lower, 1 + upper
    match box.how:
        case How.INNER:
            return Joined(max(0, -lower, upper))
        case How.LEFT:
            behind = max(0, left)
        case How.FULL:
            behind = max(0, left, right)
    return Joined(max(0, -lower, upper, upper - lower), behind, lets_go=True)
