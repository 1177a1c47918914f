import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from brokers.records import KafkaRecord
from pipeline.ids import (
    BatchId,
    Epoch,
    Incarnation,
    Offset,
    StreamName,
    TopicName,
)
from pipeline.markers.codec import encode_marker
from pipeline.markers.commit_marker import CommitMarker, Totals
from pipeline.markers.positions import InputPartition
from tests.unit.cli.twins import opener
from tests.unit.dead_letters.support import NAMES, NOW
from tests.unit.deploy.twins import World, write_project
from tests.unit.lanes.marked import marked

Caller = Callable[..., Any]
TOPIC = TopicName("car-sightings")


@pytest.fixture
def world(medusa: Caller) -> World:
    """The small network, whose fragment `moving` has read three of five records."""
    found = World.new()
    found.kafka.add(TOPIC, 1)
    write_project(Path())
    assert medusa("deploy", "--no-wait", opener=opener(found)).code == 0
    at = InputPartition(StreamName("sightings"), TOPIC, 0)
    redrive = InputPartition(StreamName("sightings"), NAMES.redrive, 0)
    read = {at: Offset(3), redrive: Offset(7)}
    marker = CommitMarker(
        Epoch(1), Incarnation("a"), BatchId(1), read, read, read, None, None, {},
        BatchId(1), None, Totals(), NOW, "digest",
        sources=marked(read, ids={n: t.topic_id for n, t in found.kafka.topics.items()}),
    )  # fmt: skip
    found.write(NAMES.markers, encode_marker(marker))
    found.put(*(KafkaRecord(TOPIC, 0, Offset(n), NOW, None, b"v") for n in range(5)))
    return found


@pytest.fixture
def offsets(medusa: Caller, world: World) -> Caller:
    """Caller of `medusa offsets` in that world."""
    connect = opener(world)

    def call(*arguments: str) -> Any:
        return medusa("offsets", *arguments, opener=connect)

    return call


def test_show_prints_position_end_and_lag_of_input_streams_only(offsets: Caller) -> None:
    """The source of the agent's messages is no input stream."""
    (row,) = offsets("show", "cars.moving", "-o", "json").data["offsets"]
    assert row == {
        "network": "cars",
        "fragment": "moving",
        "group": "local.cars.moving",
        "input": "sightings",
        "topic": "car-sightings",
        "partition": 0,
        "position": 3,
        "end": 5,
        "lag": 2,
        "log_start": 0,
        "next_record": "2023-11-14T22:13:20.000Z",
    }


def test_a_fragment_that_never_ran_has_no_position(offsets: Caller) -> None:
    """An unknown position is null, not zero; its export is refused."""
    (row,) = offsets("show", "cars.stopped", "-o", "json").data["offsets"]
    assert (row["position"], row["lag"], row["next_record"]) == (None, None, None)
    assert "-" in offsets("show", "cars.stopped").out
    refused = offsets("export", "cars.stopped")
    assert refused.code == 65
    assert "has not run yet" in refused.err


def test_export_has_the_formats_of_other_tools(offsets: Caller) -> None:
    """Spark's JSON, the CSV of Kafka's tool, and data with the group."""
    assert json.loads(offsets("export", "cars.moving").out) == {"car-sightings": {"0": 3}}
    assert offsets("export", "moving", "--form", "kafka").out == "car-sightings,0,3\n"
    (found,) = offsets("export", "cars.moving", "-o", "json").data["fragments"]
    assert found["group"] == "local.cars.moving"
    assert found["positions"] == {"car-sightings": {"0": 3}}


def test_plain_text_is_limited_to_one_fragment(offsets: Caller) -> None:
    """A network of several is refused, with their names."""
    called = offsets("export", "cars")
    assert called.code == 65
    assert "cars.moving, cars.stopped" in called.err
