"""Announced removals that a lane finishes before it chooses positions, and its own removals."""

from dataclasses import replace
from typing import cast

import pytest

from brokers.memory_kafka.cluster import MemoryKafka
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import TrimRecord
from pipeline.ids import (
    FragmentId,
    FragmentName,
    Incarnation,
    NetworkId,
    Offset,
    TopicId,
    TopicName,
)
from pipeline.lanes.start.facts import StateChoice
from pipeline.markers.commit_marker import CommitMarker
from pipeline.planner.state import OnChange
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.spark.run.lane_trimming import finish_trims, new_trimmers
from pipeline.trimming.readers import ReadersInCatalog
from tests.memory_store import MemoryTree
from tests.unit.catalog.support import ME, MOVING, NOW, TOLLS, deployed, session
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import create
from tests.unit.spark.run.test_lane_settings import FIRST, SECOND
from tests.unit.spark.run.test_lane_settings import settings as settings_of
from tests.unit.spark.run.test_rebuild import MARKER

WRITER = FragmentId(TOLLS, FragmentName("writer"))
INPUT = settings_of(None).fragment.inputs[0].topic
ONE = Incarnation("one")


def scene(ends: int) -> tuple[MemoryKafka, LaneSettings]:
    """A topic of so many records, and a lane that reads it; its writer has announced five."""
    kafka = MemoryKafka(TwinClock())
    create(kafka, INPUT)
    for _ in range(ends):
        kafka.append(INPUT, None, b"")
    _, catalog = session(MemoryTree())
    deployed(catalog, MOVING)
    topic_id = TopicId(kafka.topics[INPUT].topic_id)
    announce(catalog, INPUT, topic_id)
    lane = replace(
        settings_of(None),
        topic_ids={INPUT: topic_id},
        readers=ReadersInCatalog(catalog, FragmentId(NetworkId(ME, TOLLS.name), MOVING)),
    )
    return kafka, lane


def announce(catalog: Catalog, topic: TopicName, topic_id: TopicId) -> None:
    """Announce the removal of five records."""
    before = ((0, Offset(5)),)
    trim = TrimRecord(TOLLS, WRITER.fragment, topic, topic_id, before, "", NOW)
    assert catalog.trims.announce(trim, catalog.trims.revision(ME))


@pytest.mark.parametrize(
    ("last", "start"),
    [
        (None, 5),
        (replace(MARKER, decided=FIRST), 5),
        (replace(MARKER, decided=SECOND), 0),
    ],
)
def test_a_lane_that_chooses_positions_finishes_what_was_announced(
    last: CommitMarker | None, start: int
) -> None:
    """One that has carried out its deploy goes on from its marker, which nothing is below."""
    kafka, lane = scene(ends=9)
    finish_trims(lane, last, kafka)
    assert kafka.topics[INPUT].partitions[0].start == start


def test_a_rebuild_that_was_chosen_reads_what_stays() -> None:
    """It reads from the beginning of the topic."""
    kafka, lane = scene(ends=9)
    chosen = replace(lane, choice=StateChoice(OnChange.REBUILD, ONE))
    finish_trims(chosen, replace(MARKER, incarnation=ONE, decided=SECOND), kafka)
    assert kafka.topics[INPUT].partitions[0].start == 5


def test_a_topic_that_has_lost_its_end_is_read_as_it_is() -> None:
    """The lane compares the ends with what was read."""
    kafka, lane = scene(ends=3)
    finish_trims(lane, None, kafka)
    assert kafka.topics[INPUT].partitions[0].start == 0


def test_a_topic_of_the_same_name_is_left_alone() -> None:
    """The announcement was for an earlier one."""
    kafka, lane = scene(ends=9)
    finish_trims(replace(lane, topic_ids={INPUT: "another"}), None, kafka)
    assert kafka.topics[INPUT].partitions[0].start == 0


def test_a_follower_removes_nothing() -> None:
    """It writes nothing; the lane of the owner trims."""
    assert new_trimmers(settings_of(None), cast("LaneHost", None)) == ()
