"""Dead letters of results of an as-of join: shown with the left row, whose record is redriven."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from brokers.records import Ends, KafkaRecord
from pipeline.ids import (
    BatchId,
    BoxName,
    Epoch,
    FragmentId,
    FragmentName,
    Incarnation,
    Millis,
    NetworkId,
    NetworkName,
    NetworkVersion,
    Offset,
    ParticipantId,
    TopicId,
    TopicName,
)
from pipeline.lanes.dead_letters import Context, headers
from pipeline.lanes.source_ids import answered_by, first_sources, planned_sources
from pipeline.markers.codec import encode_marker
from pipeline.markers.commit_marker import CommitMarker, Totals
from pipeline.markers.positions import MarkedSource
from pipeline.names import FragmentNames
from pipeline.operations.networks import deployed_plans
from pipeline.planner.plan import Fragment
from tests.unit.cli.twins import opener
from tests.unit.deploy.twins import World, write_project
from tests.unit.operations.twins import TwinConnections, TwinRecomputer

Caller = Callable[..., Any]
NAMES = FragmentNames(
    FragmentId(NetworkId(ParticipantId("local"), NetworkName("cars")), FragmentName("rated"))
)
SIGHTINGS = TopicName("car-sightings")
YOUNG = Millis(4_000_000_000_000)
DOCUMENT = """\
network: cars
streams:
  sightings: {topic: car-sightings, schema: sighting.avsc, event_time: seen_at}
  limits: {topic: car-limits, schema: sighting.avsc, event_time: seen_at}
boxes:
  rated:
    as_of: {left: sightings, right: limits, on: [car], within: 1d}
    select: {car: left.car, part: left.speed / right.speed}
outputs: {rated: {topic: rated-cars}}
"""
VALUES = b'{"left":{"car":"a","speed":1.0},"right":{"car":"a","speed":0.0}}'


@dataclass
class Rated:
    """A network with an as-of join, its dead letters, and the caller of `medusa dlq`."""

    world: World
    dlq: Caller
    fragment: Fragment
    sources: tuple[MarkedSource, ...]

    @property
    def sightings(self) -> MarkedSource:
        """The source of the left rows."""
        return next(source for source in self.sources if source.name == "sightings")

    def letter(self, number: int, offset: int, **more: Any) -> None:
        """The dead letter of a result of one record of sightings."""
        facts: dict[str, Any] = {
            "row": f"{SIGHTINGS}/0/{offset}",
            "topic_id": self.world.kafka.topics[SIGHTINGS].topic_id,
            "held_by": answered_by(self.fragment, self.sources),
            "held": b"said",
            **more,
        }
        context = Context(
            reason="evaluation_failed",
            message="select.part cannot be computed: left.speed / right.speed",
            box=BoxName("rated"),
            input=self.sightings.name,
            port="left",
            topic=None,
            partition=None,
            offset=None,
            timestamp_ms=Millis(YOUNG - 60_000),
            version=NetworkVersion(1),
            field="select.part",
            source=self.sightings.id,
            **facts,
        )
        of = headers(NAMES, context, ())
        came = Millis(YOUNG + number)
        topic = NAMES.dead_letters
        self.world.put(KafkaRecord(topic, 0, Offset(number), came, None, VALUES, of))

    def redriven(self) -> list[KafkaRecord]:
        """The redriven records."""
        return self.world.records(NAMES.redrive)

    def change(self, number: int, **changes: Any) -> None:
        """Replace one of the sightings."""
        log = self.world.kafka.topics[SIGHTINGS].partitions[0].log
        log[number] = replace(log[number], **changes)


@pytest.fixture
def bare(medusa: Caller) -> Rated:
    """Three sightings, and no dead letter yet."""
    world = World.new()
    for topic in (SIGHTINGS, "car-limits"):
        world.kafka.add(topic, 1)
    write_project(Path(), DOCUMENT)
    assert medusa("deploy", "--no-wait", opener=opener(world)).code == 0
    for n in range(3):
        time_ms, trace = Millis(YOUNG - 5 + n), (("trace", b"%d" % n),)
        world.put(
            KafkaRecord(SIGHTINGS, 0, Offset(n), time_ms, b"key %d" % n, b"value %d" % n, trace)
        )
    connections = TwinConnections(world, TwinRecomputer())
    (plan,) = deployed_plans(connections.catalog)
    (fragment,) = plan.fragments
    ids = {name: TopicId(topic.topic_id) for name, topic in world.kafka.topics.items()}
    sources = first_sources(planned_sources(fragment, ids))
    found = CommitMarker(
        Epoch(1), Incarnation("a"), BatchId(1), {}, {}, {}, Millis(YOUNG), Millis(YOUNG), {},
        BatchId(1), None, Totals(), YOUNG, "digest", sources=sources,
    )  # fmt: skip
    world.write(NAMES.markers, encode_marker(found))
    connect = opener(world)

    def call(*arguments: str) -> Any:
        return medusa("dlq", *arguments, opener=connect)

    return Rated(world, call, fragment, sources)


@pytest.fixture
def rated(bare: Rated) -> Rated:
    """A dead letter of a result of the second sighting."""
    bare.letter(0, 1)
    return bare


def test_the_left_row_is_shown(rated: Rated) -> None:
    """Besides the values, and as data."""
    lines = rated.dlq("show", "rated").out.splitlines()
    assert (
        lines[2] == "  from   a result: that of the left row in car-sightings 0@1, input sightings"
    )
    assert lines[3].startswith("  with   left")
    data = rated.dlq("show", "rated", "-o", "json").data
    assert data["row"] == {"topic": "car-sightings", "partition": 0, "offset": 1}
    assert (data["from"], data["port"], data["input"]) == (None, "left", "sightings")
    assert data["cause"] == "division by zero: right.speed is 0.0"
    assert rated.dlq("list", "-o", "json").data["fragments"][0]["letters"] == 1


def test_the_record_of_the_left_row_is_sent_again_once(rated: Rated) -> None:
    """As it is in its topic, with the version from the table; it is not late."""
    rated.letter(1, 2, held=None)
    dry = rated.dlq("redrive", "rated", "--dry-run", "-o", "json").data
    assert (dry["sent"], dry["late"]["count"], dry["late"]["unknown"]) == (2, 0, 0)
    assert rated.dlq("redrive", "rated", "--yes", "-o", "json").data["sent"] == 2
    first, second = rated.redriven()
    assert (first.key, first.value, first.timestamp_ms) == (b"key 1", b"value 1", YOUNG - 4)
    assert first.headers == (
        ("trace", b"1"),
        ("medusa.error.format", b"1"),
        ("medusa.error.source", str(rated.sightings.id).encode()),
        ("medusa.error.port", b"left"),
        ("medusa.error.attempt", b"1"),
        ("medusa.redriven.from", b"0/0"),
        ("medusa.redriven.origin", b"car-sightings/0/1"),
        ("medusa.error.held_by", answered_by(rated.fragment, rated.sources).encode()),
        ("medusa.error.held", b"said"),
    )
    assert second.value == b"value 2"
    assert "medusa.error.held" not in dict(second.headers)
    again = rated.dlq("redrive", "rated", "--yes", "-o", "json").data
    assert (again["sent"], again["already_sent"]) == (0, 2)


def test_a_record_that_failed_again_is_read_from_the_redrive_topic(rated: Rated) -> None:
    """It keeps its first position, and the headers of the original."""
    rated.dlq("redrive", "rated", "--yes")
    ids = rated.world.kafka.topics
    rated.letter(
        1, 0, row=f"{NAMES.redrive}/0/0", topic_id=ids[NAMES.redrive].topic_id, attempt=2,
        first="car-sightings/0/1",
    )  # fmt: skip
    assert rated.dlq("redrive", "rated", "--yes", "-o", "json").data["sent"] == 1
    _, copy = rated.redriven()
    found = dict(copy.headers)
    assert (copy.value, copy.headers[0]) == (b"value 1", ("trace", b"1"))
    assert found["medusa.redriven.origin"] == b"car-sightings/0/1"
    assert (found["medusa.redriven.from"], found["medusa.error.attempt"]) == (b"0/1", b"2")
    assert len(copy.headers) == len(rated.redriven()[0].headers)
    assert "at first car-sightings 0@1" in rated.dlq("show", "rated", "--limit", "1").out


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"row": "car-sightings/0/9"}, "not in its topic any more"),
        ({"topic_id": "another"}, "not that of their input"),
        ({"row": "gone/0/1"}, "not in its topic any more"),
        ({"held_by": "1:other"}, "would decide otherwise by now"),
    ],
)
def test_a_record_that_cannot_be_restored_exactly_is_refused(
    bare: Rated, more: dict[str, Any], why: str
) -> None:
    """With the reason; no record is sent."""
    bare.letter(0, 1, **more)
    called = bare.dlq("redrive", "rated", "--yes")
    assert called.code == 65
    assert why in called.err
    assert "medusa replay cars.rated" in called.err
    assert bare.redriven() == []


def test_a_topic_without_a_leader_is_retried(rated: Rated, monkeypatch: pytest.MonkeyPatch) -> None:
    """It still contains the record, so the error must not recommend a replay."""
    start_offsets = rated.world.kafka.start_offsets

    def without(topics: Iterable[TopicName]) -> Ends:
        return start_offsets(topic for topic in topics if topic != SIGHTINGS)

    monkeypatch.setattr(rated.world.kafka, "start_offsets", without)
    called = rated.dlq("redrive", "rated", "--yes")
    assert called.code == 75
    assert "has no leader now" in called.err
    assert rated.redriven() == []


def test_a_record_that_the_redrive_topic_rejects_stops_no_other(rated: Rated) -> None:
    """It is named; the other record is sent."""
    rated.change(2, value=b"v" * 9_000_000)
    rated.letter(1, 2)
    called = rated.dlq("redrive", "rated", "--yes", "-o", "json")
    assert called.code == 0
    (refused,) = called.data["refused"]
    assert (called.data["sent"], refused["count"]) == (1, 1)
    assert "raise its max.message.bytes" in refused["reason"]
    (copy,) = rated.redriven()
    assert copy.value == b"value 1"


def test_a_record_about_to_expire_is_not_sent(rated: Rated) -> None:
    """By its own timestamp, which the copy keeps; that of the result may be younger."""
    old = Millis(1_000_000_000_000)
    for number in range(3):
        rated.change(number, timestamp_ms=old)
    called = rated.dlq("redrive", "rated", "--yes")
    assert called.code == 65
    assert "have reached the retention" in called.err


def test_a_deploy_with_another_select_still_accepts_it(rated: Rated) -> None:
    """The output columns do not affect the version from the table."""
    mended = DOCUMENT.replace("left.speed / right.speed", "try_divide(left.speed, right.speed)")
    assert json.dumps(mended) != json.dumps(DOCUMENT)
    write_project(Path(), mended)
    connections = TwinConnections(rated.world, TwinRecomputer())
    before = answered_by(rated.fragment, rated.sources)
    (plan,) = deployed_plans(connections.catalog)
    assert answered_by(plan.fragments[0], rated.sources) == before
