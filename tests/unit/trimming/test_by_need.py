"""Trimming by need, against a Kafka and a catalog in memory."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from brokers.log_reader import LogReader
from brokers.memory_kafka.cluster import MemoryKafka
from brokers.records import TopicDescription
from pipeline.catalog.records import DesiredState
from pipeline.errors import MedusaError, UnavailableError
from pipeline.ids import FragmentId, Offset, StreamName, TopicId, TopicName
from pipeline.lanes.needed_by_readers import Reader
from pipeline.markers.codec import encode_marker
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import InputPartition
from pipeline.names import FragmentNames
from pipeline.trimming.by_need import ByNeed
from pipeline.trimming.readers import ReadersInCatalog
from tests.unit.catalog.support import ME, MOVING, SPEED, TOLLS
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import create
from tests.unit.lanes.marked import marked
from tests.unit.spark.run.test_rebuild import MARKER
from tests.unit.trimming.test_readers import DEPLOY, READER, TOPIC, WRITER, catalog_of

NAMES = FragmentNames(FragmentId(TOLLS, SPEED))
AT = InputPartition(StreamName("moving"), TOPIC, 0)


class Scene(MemoryKafka):
    """A topic of ten records, with a reader."""

    def __init__(self) -> None:
        super().__init__(TwinClock())
        create(self, TOPIC, NAMES.markers)
        for _ in range(10):
            self.append(TOPIC, None, b"")
        self.id = self.topics[TOPIC].topic_id
        ids = ((TOPIC, self.id),)
        self.catalog = catalog_of(replace(WRITER, topic_ids=ids), replace(READER, topic_ids=ids))
        self.is_wanted, self.is_down = True, False
        readers = ReadersInCatalog(self.catalog, FragmentId(TOLLS, MOVING))
        self.trimming = self.new_trimming(readers)

    def new_trimming(self, readers: ReadersInCatalog) -> ByNeed:
        """A trimming that has not looked yet."""
        log = LogReader(self, 1.0)
        return ByNeed(
            TOPIC, TopicId(self.id), lambda: self.is_wanted, self, log, readers, self.clock
        )

    def reads(self, start: int, needed: int) -> None:
        """The reader commits a batch."""
        end = {AT: Offset(needed)}
        marker: CommitMarker = replace(
            MARKER,
            start={AT: Offset(start)},
            end=end,
            needed=end,
            decided=DEPLOY,
            sources=marked(end, ids={TOPIC: self.id}),
        )
        self.append(NAMES.markers, b"marker", encode_marker(marker))

    def delete_records(self, topic: TopicName, before: Mapping[int, Offset]) -> None:
        """Delete records, unless the broker is down."""
        if self.is_down:
            raise UnavailableError("no leader", place=f"topic {topic}")
        super().delete_records(topic, before)

    @property
    def start(self) -> int:
        """The oldest offset of the topic."""
        return self.topics[TOPIC].partitions[0].start

    @property
    def held(self) -> str:
        """Why nothing is removed, by the catalog."""
        return self.catalog.trims.of(ME)[0].held


def test_what_two_looks_do_not_need_is_removed() -> None:
    """A follower may have read the marker of the first one."""
    scene = Scene()
    scene.reads(2, 4)
    assert scene.trimming.apply() == {}
    scene.reads(4, 8)
    assert scene.trimming.apply() == {0: 2}
    assert scene.start == 2
    assert scene.trimming.apply() == {0: 4}
    assert scene.trimming.apply() == {}
    assert [dict(one.before) for one in scene.catalog.trims.of(ME)] == [{0: 4}]


def test_a_reader_that_has_not_run_is_waited_for() -> None:
    """It begins with what is there."""
    scene = Scene()
    for _ in range(3):
        assert scene.trimming.apply() == {}
    assert scene.held == "fragment tolls.average_speed has not run"
    scene.reads(2, 4)
    scene.trimming.apply()
    assert scene.held == ""
    assert scene.trimming.apply() == {0: 2}


def test_nothing_is_removed_that_was_not_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that is deployed between the look and the announcement ends the look."""
    scene = Scene()
    scene.reads(2, 4)
    scene.trimming.apply()
    find = ReadersInCatalog.find

    def found(
        readers: ReadersInCatalog, topic: TopicName, topic_id: str
    ) -> tuple[int, tuple[Reader, ...]]:
        answer = find(readers, topic, topic_id)
        scene.catalog.fragments.set_desired(TOLLS, DesiredState.PAUSED)
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(ReadersInCatalog, "find", found)
        assert scene.trimming.apply() == {}
    assert scene.start == 0
    assert scene.trimming.apply() == {}
    assert scene.trimming.apply() == {0: 2}


def test_a_removal_that_failed_was_announced() -> None:
    """So a reader that begins meanwhile can finish it; the writer does, too."""
    scene = Scene()
    scene.reads(2, 4)
    scene.trimming.apply()
    scene.is_down = True
    with pytest.raises(UnavailableError):
        scene.trimming.apply()
    assert scene.catalog.trims.announced(ME, {TOPIC: scene.id}) == {TOPIC: {0: 2}}
    scene.is_down = False
    assert [scene.trimming.apply(), scene.start] == [{0: 2}, 2]


def test_a_topic_that_was_made_again_is_left_alone() -> None:
    """Its offsets are others."""
    scene = Scene()
    scene.reads(2, 4)
    scene.trimming.apply()
    scene.delete_topics((TOPIC,))
    create(scene, TOPIC)
    assert scene.trimming.apply() == {}


def test_a_topic_that_is_not_kept_by_need_any_more_is_left_alone() -> None:
    """When it is again, what was needed before is not known."""
    scene = Scene()
    scene.reads(2, 4)
    scene.trimming.apply()
    scene.is_wanted = False
    assert scene.trimming.apply() == {}
    scene.is_wanted = True
    assert scene.trimming.apply() == {}
    assert scene.trimming.apply() == {0: 2}


def test_without_the_catalog_or_a_marker_nothing_is_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An unreadable marker is an error, not a reader without needs."""
    scene = Scene()
    scene.reads(2, 4)
    scene.trimming.apply()

    def unreachable(_: ReadersInCatalog, topic: TopicName, topic_id: str) -> None:
        raise UnavailableError(f"no answer about {topic} {topic_id}")

    with monkeypatch.context() as patch:
        patch.setattr(ReadersInCatalog, "find", unreachable)
        with pytest.raises(UnavailableError):
            scene.trimming.apply()
    scene.append(NAMES.markers, b"marker", b"damaged")
    for _ in range(2):
        with pytest.raises(MedusaError):
            scene.trimming.apply()
    assert scene.start == 0


def test_partitions_without_a_leader_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The starts of the topic are not known then."""
    scene = Scene()
    scene.reads(2, 4)
    scene.trimming.apply()
    monkeypatch.setattr(scene, "start_offsets", lambda _: {})
    assert scene.trimming.apply() == {}


def test_a_deleted_topic_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its readers stop for another reason."""

    def described(_: Iterable[TopicName]) -> Mapping[TopicName, TopicDescription]:
        return {}

    scene = Scene()
    monkeypatch.setattr(scene, "describe", described)
    assert scene.trimming.apply() == {}
