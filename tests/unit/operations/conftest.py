"""The small network, deployed, and connections to it."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from pipeline.deploy.apply import compare, deploy
from pipeline.deploy.documents import read_document
from pipeline.ids import (
    BatchId,
    Epoch,
    Incarnation,
    Offset,
    ParticipantId,
    SourceId,
    StreamName,
    TopicName,
)
from pipeline.markers.codec import encode_marker
from pipeline.markers.commit_marker import CommitMarker, Totals
from pipeline.markers.positions import InputPartition
from pipeline.operations.connections import Connections
from tests.unit.dead_letters.support import NAMES, NOW
from tests.unit.deploy.twins import World, write_project
from tests.unit.lanes.marked import marked
from tests.unit.operations.twins import TwinConnections, TwinRecomputer


@pytest.fixture
def world(tmp_path: Path) -> World:
    """The network is deployed; its fragment `moving` has read three records of its input."""
    found = World.new()
    document = read_document(write_project(tmp_path), lambda _: None)
    deploy(compare(document, ParticipantId("local"), found.servers), found.servers, lambda _: None)
    read = {InputPartition(StreamName("sightings"), TopicName("car-sightings"), 0): Offset(3)}
    ids = {name: topic.topic_id for name, topic in found.kafka.topics.items()}
    (source,) = marked(read, ids=ids)
    sources = (replace(source, id=SourceId("id of car-sightings/0")),)
    marker = CommitMarker(
        Epoch(1), Incarnation("a"), BatchId(1), read, read, read, None, None, {},
        BatchId(1), None, Totals(), NOW, "digest", sources=sources,
        letters=ids[NAMES.dead_letters], letters_from={0: Offset(2)},
    )  # fmt: skip
    found.write(NAMES.markers, encode_marker(marker))
    return found


@pytest.fixture
def connections(world: World) -> Connections:
    """Connections to its servers."""
    return cast("Connections", TwinConnections(world, TwinRecomputer()))
