from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from brokers.records import KafkaRecord
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
    StreamName,
    TopicName,
)
from pipeline.lanes.dead_letters import Context, headers
from pipeline.lanes.result_headers import CORRECTION, RESULT_ID
from pipeline.markers.codec import encode_marker
from pipeline.markers.commit_marker import CommitMarker, Totals
from pipeline.markers.positions import InputPartition
from pipeline.names import FragmentNames
from pipeline.operations.replay import corrections
from tests.unit.cli.twins import opener
from tests.unit.deploy.twins import World, write_project
from tests.unit.lanes.marked import marked
from tests.unit.operations.twins import TwinRecomputer

Caller = Callable[..., Any]
BASE = Millis(1_700_000_000_000)
INPUT = TopicName("car-sightings")
NAMES = FragmentNames(
    FragmentId(NetworkId(ParticipantId("local"), NetworkName("cars")), FragmentName("speeds"))
)
DOCUMENT = """\
network: cars
streams:
  sightings: {topic: car-sightings, schema: sighting.avsc, event_time: seen_at, ahead: 1s}
boxes:
  moving: {filter: sightings, where: speed > 0}
  speeds: {aggregate: moving, window: 10s, by: [car], compute: {n: count(*)}}
  fast: {filter: speeds, where: n > 3}
outputs:
  speeds: {topic: car-speeds}
  fast: {topic: fast-cars, corrections: true}
"""
READER = """\
network: readers
streams:
  fast: {topic: fast-cars, subject: fast-cars-value, event_time: window_end}
boxes:
  slow: {filter: fast, where: n < 100}
"""
FAST = FragmentNames(
    FragmentId(NetworkId(ParticipantId("local"), NetworkName("cars")), FragmentName("fast"))
)


@dataclass
class Scene:
    """A world with the network deployed, records of 30 s, and the computing engine."""

    medusa: Caller
    world: World
    engine: TwinRecomputer = field(default_factory=TwinRecomputer)

    def replay(self, *arguments: str) -> Any:
        """Call `medusa replay`."""
        return self.medusa("replay", *arguments, opener=opener(self.world, self.engine))

    def into(self, topic: str) -> list[KafkaRecord]:
        """The records of a topic."""
        return self.world.records(TopicName(topic))


def at(seconds: int) -> str:
    """A time as a user types it."""
    return f"2023-11-14T22:13:{20 + seconds:02d}.000Z"


@pytest.fixture
def scene(medusa: Caller) -> Scene:
    """The boundary of speeds is at 25 s; one late record is a dead letter."""
    world = World.new()
    world.kafka.add(INPUT, 1)
    write_project(Path(), DOCUMENT)
    assert medusa("deploy", "--no-wait", opener=opener(world)).code == 0
    place = InputPartition(StreamName("sightings"), INPUT, 0)
    read = {place: Offset(30)}
    marker = CommitMarker(
        Epoch(1), Incarnation("a"), BatchId(1), read, read, read, None, None, {},
        BatchId(1), Millis(BASE + 25_000), Totals(), BASE, "digest",
        sources=marked(read),
    )  # fmt: skip
    world.write(NAMES.markers, encode_marker(marker))
    records = [
        KafkaRecord(INPUT, 0, Offset(n), Millis(BASE + 1_000 * n), None, b"v") for n in range(30)
    ]
    late = Context(
        reason="late", message="", box=BoxName("speeds"), input=StreamName("sightings"),
        port="only", topic=INPUT, partition=0, offset=Offset(28), timestamp_ms=BASE,
        version=NetworkVersion(1), event_time_ms=Millis(BASE + 12_000), closed_ms=BASE,
    )  # fmt: skip
    letter = KafkaRecord(
        NAMES.dead_letters, 0, Offset(0), BASE, None, b"v", headers(NAMES, late, ())
    )
    world.put(*records, letter)
    return Scene(medusa, world)


def test_without_yes_a_replay_only_prints_its_plan(scene: Scene) -> None:
    """The input is read from the start of the first window, minus `ahead`."""
    called = scene.replay("cars.speeds", "--from", at(12), "-o", "json")
    assert called.code == 0, called.err
    found = called.data
    assert (found["dry_run"], found["version"], found["fragment"]) == (True, 1, "speeds")
    assert (found["into"], found["partitions"]) == ("car-speeds.replay-1", 4)
    assert (found["results_from"], found["input_from"]) == (at(20), at(10))
    assert (found["results_until"], found["input_until"]) == (at(25)[:-4] + "001Z", at(20))
    (read,) = found["reads"]
    assert (read["start"], read["end"], read["first_record"]) == (9, 30, at(9))
    assert (found["late_counted_in"], found["dead_letters_judged_again"]) == (1, 0)
    assert scene.engine.calls == []
    text = scene.replay("cars.speeds", "--from", at(12)).out
    assert "nothing was done; --yes does it" in text
    assert "car-sightings, partition 0: 9 up to 30" in text


def test_with_yes_results_are_written_into_a_new_topic(scene: Scene) -> None:
    """Keys, values and timestamps as computed; records that are left out are reported."""
    scene.engine.made = [(b"k", b"v", BASE + 20_000, -1, None)]
    called = scene.replay("cars.speeds", "--from", at(12), "--yes", "-o", "json")
    assert called.code == 0, called.err
    assert (called.data["dry_run"], called.data["written"]) == (False, 1)
    assert called.data["left_out"] == {"undecodable": 1}
    assert called.data["failed_results"] == {"evaluation_failed": 1}
    ((ranges, period),) = scene.engine.calls
    assert [(r.topic, r.start, r.end) for r in ranges] == [(INPUT, 9, 30)]
    assert period.results_from_ms == BASE + 20_000
    (written,) = scene.into("car-speeds.replay-1")
    assert (written.key, written.value, written.timestamp_ms) == (b"k", b"v", BASE + 20_000)
    assert scene.into("car-speeds") == []
    again = scene.replay("cars.speeds", "--from", at(12), "--yes")
    assert "1 result written to car-speeds.replay-2, complete" in again.out


def test_no_topic_is_created_without_results(scene: Scene) -> None:
    """A replay topic without visible records counts as incomplete, so none is created."""
    called = scene.replay("cars.speeds", "--from", at(12), "--yes")
    assert "there are no results" in called.out
    assert TopicName("car-speeds.replay-1") not in scene.world.kafka.topics


def test_an_empty_topic_is_used(scene: Scene) -> None:
    """A killed run leaves one; records or another number of partitions are refused."""
    scene.engine.made = [(None, b"v", BASE + 20_000, -1, None)]
    scene.world.kafka.add("left", 4)
    arguments = ("cars.speeds", "--from", at(12), "--yes", "--into")
    assert scene.replay(*arguments, "left").code == 0
    refused = scene.replay(*arguments, "left")
    assert refused.code == 65
    assert "it holds records" in refused.err
    scene.world.kafka.add("narrow", 1)
    assert "it has 1 partitions, the output has 4" in scene.replay(*arguments, "narrow").err


@pytest.mark.parametrize(
    "topic", ["car-speeds", "car-sightings", "x.markers", "local.cars.speeds.dlq"]
)
def test_topics_of_networks_are_refused_as_targets(scene: Scene, topic: str) -> None:
    """Also while they are empty."""
    called = scene.replay("cars.speeds", "--from", at(12), "--into", topic)
    assert called.code == 65
    assert "a replay goes into a topic of its own" in called.err


def test_a_box_selects_the_fragment_that_computes_it(scene: Scene) -> None:
    """An unknown name is refused with the existing ones."""
    found = scene.replay("cars.moving", "--from", at(12), "-o", "json").data
    assert found["fragment"] == "speeds"
    refused = scene.replay("cars.nothing", "--from", at(12))
    assert refused.code == 65
    assert "cars.speeds" in refused.err


def test_a_record_selects_its_event_time(scene: Scene) -> None:
    """For an external stream the engine computes it."""
    scene.engine.times[Offset(4)] = Millis(BASE + 3_000)
    found = scene.replay("cars.speeds", "--from", "sightings/0/4", "-o", "json").data
    assert (found["results_from"], found["input_from"]) == (at(10), at(0))
    gone = scene.replay("cars.speeds", "--from", "car-sightings/0/30")
    assert gone.code == 65
    assert "the partition holds the offsets 0 up to 30" in gone.err
    assert scene.replay("cars.speeds", "--from", "car-sightings/4").code == 64
    assert "is no input of cars.speeds" in scene.replay("speeds", "--from", "other/0/4").err


@pytest.fixture
def fast(scene: Scene) -> Scene:
    """The fragment with `corrections: true` has run too, and has written a result."""
    read = {InputPartition(StreamName("speeds"), TopicName("car-speeds"), 0): Offset(1)}
    marker = CommitMarker(
        Epoch(1), Incarnation("a"), BatchId(1), read, read, read, None, None, {},
        BatchId(1), Millis(BASE + 25_000), Totals(), BASE, "digest",
        sources=marked(read),
    )  # fmt: skip
    scene.world.write(FAST.markers, encode_marker(marker))
    scene.world.put(
        KafkaRecord(TopicName("car-speeds"), 0, Offset(0), Millis(BASE + 20_000), b"k", b"in"),
        KafkaRecord(
            TopicName("fast-cars"), 0, Offset(0), Millis(BASE + 20_000), b"k", b"old",
            ((RESULT_ID, b"car-speeds/0/0"),),
        ),
    )  # fmt: skip
    return scene


def test_corrections_are_compared_first_and_written_with_yes(fast: Scene) -> None:
    """With the result's id and the correction's number; a second run writes nothing."""
    fast.engine.made = [(b"k", b"new", BASE + 20_000, -1, b"car-speeds/0/0")]
    arguments = ("cars.fast", "--from", at(1), "--as-corrections")
    would = fast.replay(*arguments)
    assert would.code == 0, would.err
    assert "compared with 1 result in fast-cars: 1 changed, 0 added, 0 removed" in would.out
    assert "nothing was done; --yes does it" in would.out
    assert len(fast.into("fast-cars")) == 1
    done = fast.replay(*arguments, "--yes", "-o", "json")
    assert done.code == 0, done.err
    assert {k: done.data[k] for k in ("dry_run", "into", "changed", "added", "removed")} == {
        "dry_run": False, "into": "fast-cars", "changed": 1, "added": 0, "removed": 0,
    }  # fmt: skip
    _, written = fast.into("fast-cars")
    assert (written.key, written.value, written.timestamp_ms) == (b"k", b"new", BASE + 20_000)
    assert written.headers == ((RESULT_ID, b"car-speeds/0/0"), (CORRECTION, b"1"))
    again = fast.replay(*arguments, "--yes")
    assert "nothing has to be corrected" in again.out
    assert len(fast.into("fast-cars")) == len((written, would))


def test_the_inputs_contain_all_records_of_the_compared_results(
    fast: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lane without state may publish a late result during the comparison."""
    published = corrections.published_results
    late = KafkaRecord(TopicName("car-speeds"), 0, Offset(1), Millis(BASE + 9_000), b"k", b"late")

    def published_then_late(*arguments: Any) -> Any:
        found = published(*arguments)
        fast.world.put(late)
        return found

    monkeypatch.setattr(corrections, "published_results", published_then_late)
    called = fast.replay("cars.fast", "--from", at(1), "--as-corrections", "-o", "json")
    assert called.code == 0, called.err
    assert [one["end"] for one in called.data["reads"]] == [2, 0, 0, 0]


def test_corrections_require_readers_that_accept_them(fast: Scene) -> None:
    """The output must declare it; --into and --incomplete are refused with corrections."""
    arguments = ("--from", at(1), "--as-corrections")
    refused = fast.replay("cars.speeds", *arguments)
    assert refused.code == 65
    assert "the output takes no corrections" in refused.err
    assert "corrections: true" in refused.err
    assert fast.replay("cars.fast", *arguments, "--into", "x").code == 64
    assert fast.replay("cars.fast", *arguments, "--incomplete").code == 64
    Path("readers.yaml").write_text(READER)
    deployed = fast.medusa("deploy", "-f", "readers.yaml", "--no-wait", opener=opener(fast.world))
    assert deployed.code == 0, deployed.err
    refused = fast.replay("cars.fast", *arguments)
    assert refused.code == 65
    assert "cannot be corrected while a fragment reads it: readers.slow" in refused.err


def test_a_fragment_that_never_ran_cannot_be_replayed(scene: Scene) -> None:
    """The other fragment of the network has no marker."""
    refused = scene.replay("cars.fast", "--from", at(1))
    assert refused.code == 65
    assert "has not run yet" in refused.err
