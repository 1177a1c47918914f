"""Small lanes and markers for tests of event time."""

from collections.abc import Mapping
from dataclasses import replace

from pipeline.boundaries.profile import DerivedInput, ExternalInput, LaneProfile
from pipeline.ids import (
    BatchId,
    Epoch,
    Incarnation,
    Millis,
    Offset,
    SteadyMillis,
    StreamName,
    TopicId,
    TopicName,
)
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import InputPartition
from pipeline.network.boxes.shape import Shape, Stateless
from pipeline.network.model import Silence

CARS = ExternalInput(
    stream=StreamName("cars"),
    topic=TopicName("car-sightings"),
    partitions=2,
    lateness_ms=5_000,
    idle_after_ms=10_000,
    silence=Silence.IDLE,
)
STRICT_CARS = replace(CARS, silence=Silence.MISSING)
SPEED = DerivedInput(
    StreamName("speed"), TopicName("tolls.speed"), 2, "local.tolls.speed", TopicId("speed-1")
)
VOLUME = DerivedInput(
    StreamName("volume"), TopicName("tolls.volume"), 2, "local.tolls.volume", TopicId("volume-1")
)
WANTED = StartRequest(Epoch(1), "digest", stateful=True, on_change=None, place="here")
START_MS = SteadyMillis(70_000_000)
"""A steady time at which tests begin."""
WRITTEN_MS = Millis(1_700_000_000_000)
"""A wall time."""


def lane(*inputs: ExternalInput | DerivedInput, shape: Shape | None = None) -> LaneProfile:
    """A profile; stateless by default."""
    return LaneProfile(inputs, shape or Stateless())


def at(lane_input: ExternalInput | DerivedInput, partition: int) -> InputPartition:
    """A partition of an input's own topic."""
    return InputPartition(lane_input.stream, lane_input.topic, partition)


def positions(
    lane_input: ExternalInput | DerivedInput, *offsets: int
) -> dict[InputPartition, Offset]:
    """Positions in partitions 0, 1 and so on."""
    return {at(lane_input, p): Offset(offset) for p, offset in enumerate(offsets)}


def marker(
    end: Mapping[InputPartition, Offset],
    *,
    batch: int = -1,
    progress: Mapping[InputPartition, int] | None = None,
    eviction_ms: int | None = None,
    boundary_ms: int | None = None,
) -> CommitMarker:
    """A marker with only the fields that event time depends on."""
    return replace(
        first_marker(WANTED, Incarnation("one"), end, WRITTEN_MS),
        batch=BatchId(batch),
        progress={p: Millis(t) for p, t in (progress or {}).items()},
        eviction_ms=None if eviction_ms is None else Millis(eviction_ms),
        boundary_ms=None if boundary_ms is None else Millis(boundary_ms),
    )
