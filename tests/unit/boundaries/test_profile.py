"""Event-time profile of a fragment."""

from dataclasses import dataclass, replace

import pytest

from pipeline.boundaries.profile import DerivedInput, ExternalInput, LaneProfile, profile
from pipeline.errors import BrokenInvariantError
from pipeline.ids import (
    BoxName,
    FragmentId,
    FragmentName,
    NetworkId,
    NetworkLife,
    NetworkName,
    ParticipantId,
    StreamName,
    Subject,
    TopicId,
    TopicName,
)
from pipeline.names import FragmentNames
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.filter import Filter
from pipeline.network.boxes.join import Join, TimeBound
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.shape import Joined, Sessions, Stateless, Windowed
from pipeline.network.boxes.windows import TumblingWindow
from pipeline.network.model import Box, Expression, ExternalStream, Silence, StartAt
from pipeline.network.types import Columns, Scalar
from pipeline.planner.plan import DerivedStream, Fragment, FragmentInput

LIFE = NetworkLife("second")
TRUE = Expression("true", "true", None, Scalar.BOOLEAN, nullable=False, columns=frozenset())
CARS = ExternalStream(
    name=StreamName("cars"),
    topic=TopicName("car-sightings"),
    subject=Subject("car-sightings-value"),
    schema_json="{}",
    columns=(),
    event_time=replace(TRUE, type=Scalar.TIMESTAMP),
    lateness_ms=5_000,
    idle_after_ms=10_000,
    silence=Silence.MISSING,
    start=StartAt("earliest"),
    ahead_ms=3_600_000,
    partitions=4,
)
WINDOW = TumblingWindow(60_000, 0)


def derived(name: str, partitions: int) -> DerivedStream:
    """A derived stream of the network `tolls`."""
    return DerivedStream(
        name=StreamName(name),
        topic=TopicName(f"topic-of-{name}"),
        columns=(),
        event_time_column=None,
        key=(),
        schema_json="{}",
        key_schema_json=None,
        partitions=partitions,
    )


def fragment(box: Box, *inputs: FragmentInput) -> Fragment:
    """A fragment of one box."""
    names = FragmentNames(
        FragmentId(NetworkId(ParticipantId("ann"), NetworkName("tolls")), FragmentName(box.name))
    )
    return Fragment(names=names, inputs=inputs, boxes=(box,), output=derived(box.name, 2))


def aggregate() -> Aggregate:
    """Windows of a minute over `cars`."""
    return Aggregate(
        BoxName("speed"), StreamName("cars"), WINDOW, (), (), (), columns=(), event_time_column=None
    )


def join(lower_ms: int, upper_ms: int) -> Join:
    """`moving` with `speed`."""
    bound = TimeBound(lower_ms, upper_ms)
    left, right = StreamName("moving"), StreamName("speed")
    return Join(BoxName("tolls"), left, right, (), bound, (), columns=(), event_time_column=None)


def test_an_external_input_has_the_settings_of_the_document() -> None:
    """Lateness, idleness and the meaning of silence come from the stream."""
    found = profile(fragment(aggregate(), CARS), {}, LIFE)
    expected = ExternalInput(
        StreamName("cars"), TopicName("car-sightings"), 4, 5_000, 10_000, Silence.MISSING
    )
    assert found == LaneProfile((expected,), Windowed(WINDOW))


def test_an_aggregate_over_sessions_has_its_own_shape() -> None:
    """Sessions end with their records, not at instants known in advance."""
    window = SessionWindow(gap_ms=10, longest_ms=100)
    found = fragment(replace(aggregate(), window=window), CARS)
    assert found.shape == Sessions(window)


def test_a_derived_input_names_the_fragment_that_writes_it() -> None:
    """That fragment carries the stream's name, in the same network, of the same owner.

    The topic is the one that was there at deploy; of one without an id no boundary counts.
    """
    ids = {TopicName("topic-of-moving"): "id-1"}
    moving = replace(derived("moving", 2), lateness_ms=7_000)
    found = profile(fragment(join(0, 60_000), moving, derived("speed", 3)), ids, LIFE)
    assert found.inputs == (
        DerivedInput(
            StreamName("moving"),
            TopicName("topic-of-moving"),
            2,
            "ann.tolls.moving",
            TopicId("id-1"),
            7_000,
            LIFE,
        ),
        DerivedInput(
            StreamName("speed"),
            TopicName("topic-of-speed"),
            3,
            "ann.tolls.speed",
            TopicId(""),
            life=LIFE,
        ),
    )


@pytest.mark.parametrize(
    ("lower_ms", "upper_ms", "span_ms"),
    [(0, 60_000, 60_000), (-30_000, 10_000, 30_000), (-5, 5, 5), (5_000, 9_000, 9_000), (0, 0, 0)],
)
def test_a_join_spans_the_larger_of_its_directions(
    lower_ms: int, upper_ms: int, span_ms: int
) -> None:
    """This is how far below the watermark a row can still have a partner."""
    found = fragment(join(lower_ms, upper_ms), derived("moving", 2))
    assert found.shape == Joined(span_ms)


def test_filters_make_a_stateless_lane() -> None:
    """No stateful box, no state."""
    box = Filter(BoxName("moving"), StreamName("cars"), TRUE, columns=(), event_time_column=None)
    assert fragment(box, CARS).shape == Stateless()


@dataclass(frozen=True, slots=True)
class Sorter:
    """A stateful box without event-time rules."""

    name: BoxName
    kind: str
    inputs: tuple[StreamName, ...]
    columns: Columns
    event_time_column: str | None
    key: tuple[str, ...]


def test_an_unknown_stateful_box_is_refused_by_name() -> None:
    """A guess of its event time could lose records."""
    box = Sorter(BoxName("by_time"), "sort", (StreamName("cars"),), (), None, ())
    with pytest.raises(BrokenInvariantError, match="box of kind sort") as caught:
        profile(fragment(box, CARS), {}, LIFE)
    assert caught.value.place == "box by_time"
