import base64
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.cli.session import Opener
from pipeline.ids import (
    BatchId,
    Epoch,
    Incarnation,
    Millis,
    Offset,
    SchemaId,
    SourceId,
    StreamName,
    TopicName,
)
from pipeline.markers.codec import encode_marker
from pipeline.markers.commit_marker import CommitMarker, Totals
from pipeline.markers.positions import InputPartition
from tests.unit.cli.twins import Screen, opener
from tests.unit.dead_letters.support import NAMES, NOW, record
from tests.unit.deploy.twins import World, write_project
from tests.unit.lanes.marked import marked

Caller = Callable[..., Any]
OTHER = "cars.stopped"


@pytest.fixture
def world(medusa: Caller) -> World:
    """The small network, with three dead letters: undecodable, late, and of a missing schema."""
    found = World.new()
    write_project(Path())
    assert medusa("deploy", "--no-wait", opener=opener(found)).code == 0
    found.write(NAMES.markers, marker(found, 9))
    # The command line takes the time from the machine's clock; so the records must be young.
    young = Millis(4_000_000_000_000)
    found.put(
        record(0, (("h", b"\xff"),), time=Millis(young - 9), appended=young),
        record(1, reason="late", appended=Millis(young + 1), event_time_ms=NOW, closed_ms=NOW),
        record(
            2,
            reason="schema_not_found",
            schema=SchemaId(9),
            time=young,
            appended=Millis(young + 2),
        ),
    )
    return found


@pytest.fixture
def dlq(medusa: Caller, world: World) -> Caller:
    """Caller of `medusa dlq` in that world."""
    connect: Opener = opener(world)

    def call(*arguments: str) -> Any:
        return medusa("dlq", *arguments, opener=connect)

    return call


def test_list_counts_by_fragment_and_reason_and_shows_the_limits(dlq: Caller) -> None:
    """A fragment without dead letters is listed too; a name narrows it."""
    found = dlq("list", "-o", "json").data["fragments"]
    assert [(f["fragment"], f["letters"]) for f in found] == [("moving", 3), ("stopped", 0)]
    assert found[0]["reasons"] == {"late": 1, "schema_not_found": 1, "undecodable": 1}
    assert (found[0]["retention_ms"], found[0]["retention_bytes"]) == (604_800_000, None)
    assert found[0]["oldest"] < found[0]["newest"]
    assert found[1]["oldest"] is None
    table = dlq("list", OTHER).out
    assert "cars.stopped" in table
    assert "7d, any size" in table
    assert "cars.moving" not in table


def test_a_list_fits_a_terminal(dlq: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 80 columns; columns that are left out are named."""
    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    dlq("list")
    lines = screen.plain.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[2] == "  late 1, schema_not_found 1, undecodable 1"
    assert lines[-1].startswith("no room for: kept")


@pytest.mark.parametrize("verb", [("list",), ("show",), ("redrive", "--yes"), ("purge", "--all")])
def test_the_error_for_an_unknown_name_lists_the_existing_ones(
    dlq: Caller, verb: tuple[str, ...]
) -> None:
    """Before anything is read."""
    called = dlq(*verb, "nothing")
    assert called.code == 65
    assert "there is: cars.moving, cars.stopped" in called.err


def test_a_network_is_not_one_fragment(dlq: Caller) -> None:
    """The error names its fragments."""
    called = dlq("show", "cars")
    assert called.code == 65
    assert "cars.moving, cars.stopped" in called.err


def test_show_prints_the_reason_and_is_complete_as_json(dlq: Caller) -> None:
    """The newest are last; the JSON contains every byte."""
    lines = [json.loads(line) for line in dlq("show", "moving", "-o", "json").out.splitlines()]
    assert [one["reason"] for one in lines] == ["undecodable", "late", "schema_not_found"]
    first = lines[0]
    assert first["from"] == {"topic": "car-sightings", "partition": 1, "offset": 100}
    assert base64.b64decode(first["value_base64"]) == b"value"
    assert first["headers"][0] == {"name": "h", "value_base64": "/w=="}
    assert (first["key"], first["input"], first["message"]) == (
        "key", "sightings", "the bytes are no Sighting",
    )  # fmt: skip
    assert (first["timestamp"], first["came"]) == (
        "2096-10-02T07:06:39.991Z", "2096-10-02T07:06:40.000Z",
    )  # fmt: skip
    assert lines[1]["closed"] == "2023-11-14T22:13:20.000Z"
    text = dlq("show", "moving", "--limit", "1").out
    assert text.startswith("0@2  2096-10-02T07:06:40.002Z  schema_not_found  box moving\n")
    assert "  from   car-sightings 1@102 of 2096-10-02T07:06:40.000Z, input sightings\n" in text
    assert "  value  hex 76616c7565 (" in text
    assert dlq("show", "moving", "--reason", "late", "-o", "json").data["offset"] == 1
    assert "no such dead letters" in dlq("show", "moving", "--to", "1h").err


def test_a_failed_result_is_shown_with_its_values_and_reason(dlq: Caller, world: World) -> None:
    """Also as JSON, which contains every byte."""
    message = "compute.mean cannot be computed: sum(speed) / count(speed)"
    failed = record(
        3,
        reason="evaluation_failed",
        field="compute.mean",
        message=message,
        **dict.fromkeys(("input", "topic", "partition", "offset")),
        appended=Millis(4_000_000_000_009),
    )
    value = b'{"road":"A1","sum(speed)":7.50,"count(speed)":0}'
    world.put(replace(failed, key=None, value=value))
    assert dlq("show", "moving", "--limit", "1").out.splitlines()[1:] == [
        f"  why    {message}: division by zero: count(speed) is 0",
        "  from   a result, which no single record stands for",
        '  with   road         = "A1"',
        "  with   sum(speed)   = 7.5",
        "  with   count(speed) = 0",
    ]
    data = dlq("show", "moving", "--limit", "1", "-o", "json").data
    assert data["value"] == {"road": "A1", "sum(speed)": 7.5, "count(speed)": 0}
    assert data["cause"] == "division by zero: count(speed) is 0"
    assert data["problem"] is None
    assert base64.b64decode(data["value_base64"]) == value


def test_redrive_sends_each_record_once_and_prints_why_others_are_not(
    dlq: Caller, world: World
) -> None:
    """A dry run sends nothing; without --yes or a terminal a redrive is refused."""
    dry = dlq("redrive", "moving", "--dry-run", "-o", "json").data
    assert (dry["sent"], dry["already_sent"], len(dry["refused"])) == (1, 0, 2)
    assert dry["late"] == {"box": "moving", "count": 0, "unknown": 0}
    unconfirmed = dlq("redrive", "moving")
    assert unconfirmed.code == 65
    assert "this would send 1 dead letter again" in unconfirmed.err
    assert world.records(NAMES.redrive) == []
    assert dlq("redrive", "moving", "--yes", "-o", "json").data["sent"] == 1
    assert dlq("redrive", "moving", "--yes", "-o", "json").data["already_sent"] == 1
    (copy,) = world.records(NAMES.redrive)
    assert (copy.value, copy.headers[0]) == (b"value", ("h", b"\xff"))
    assert dlq("list", "moving", "-o", "json").data["fragments"][0]["redriven"] == 1


def test_the_redrive_topic_is_created_for_the_first_record(dlq: Caller, world: World) -> None:
    """Not by a dry run or a run that sends nothing; the catalog records it."""
    assert dlq("list", "moving", "-o", "json").data["fragments"][0]["redriven"] == 0
    assert dlq("redrive", "moving", "--dry-run", "-o", "json").data["sent"] == 1
    assert dlq("redrive", "moving", "--reason", "late", "--yes").code == 65
    assert dlq("redrive", OTHER, "--yes", "-o", "json").data["sent"] == 0
    assert NAMES.redrive not in world.kafka.topics
    before = world.catalog.fragments.of(NAMES.network)
    assert dlq("redrive", "moving", "--yes", "-o", "json").data["sent"] == 1
    topic_id = world.kafka.topics[NAMES.redrive].topic_id
    after = world.catalog.fragments.of(NAMES.network)
    assert dict(after[0].topic_ids) == {**dict(before[0].topic_ids), NAMES.redrive: topic_id}
    assert (after[0].version, after[1]) == (before[0].version, before[1])
    network = world.catalog.networks.get(NAMES.network)
    assert network is not None
    assert NAMES.redrive in network.made_topics


@pytest.mark.parametrize("verb", [("list",), ("redrive", "--dry-run"), ("redrive", "--yes")])
def test_a_lost_redrive_topic_stops_a_redrive(
    dlq: Caller, world: World, verb: tuple[str, ...]
) -> None:
    """It contained which records were sent; none may be sent twice."""
    assert dlq("redrive", "moving", "--yes").code == 0
    del world.kafka.topics[NAMES.redrive]
    called = dlq(*verb, "moving")
    assert called.code == 65
    assert "the topic is gone: which dead letters were sent again is not known" in called.err
    assert world.records(NAMES.redrive) == []


def test_a_lost_redrive_topic_does_not_affect_the_list_of_others(dlq: Caller, world: World) -> None:
    """Its counts are unknown; the rest is listed."""
    assert dlq("redrive", "moving", "--yes").code == 0
    del world.kafka.topics[NAMES.redrive]
    called = dlq("list", "-o", "json")
    assert called.code == 0
    assert f"topic {NAMES.redrive}: the topic is gone" in called.err
    rows = [(row["letters"], row["redriven"]) for row in called.data["fragments"]]
    assert rows == [(3, None), (0, 0)]
    assert "?" in dlq("list").out


def test_late_records_are_refused_with_a_hint(dlq: Caller, world: World) -> None:
    """No record could be sent, which is an error."""
    called = dlq("redrive", "moving", "--reason", "late", "--yes")
    assert called.code == 65
    assert "1 late" in called.err
    assert "medusa replay cars.moving" in called.err
    assert world.records(NAMES.redrive) == []


def test_a_schema_that_was_missing_is_looked_up_again(dlq: Caller, world: World) -> None:
    """The catalog's record of the missing schema is removed before the records are sent."""
    last = SchemaId(0)
    for number in range(20):
        text = json.dumps({"type": "record", "name": f"R{number}", "fields": []})
        last = world.registry.register(f"s{number}-value", text)
        if last == SchemaId(9):
            break
    assert last == SchemaId(9)
    world.catalog.missing_schemas.record(SchemaId(9))
    dlq("redrive", "moving", "--reason", "schema_not_found", "--dry-run")
    assert world.catalog.missing_schemas.all() == {9}
    done = dlq("redrive", "moving", "--reason", "schema_not_found", "--yes", "-o", "json")
    assert done.data["sent"] == 1
    assert world.catalog.missing_schemas.all() == frozenset()
    assert len(world.records(NAMES.redrive)) == 1


def marker(world: World, needed: int) -> bytes:
    """A commit marker whose lane needs its dead letters from an offset on."""
    at = InputPartition(StreamName("sightings"), TopicName("car-sightings"), 1)
    positions = {at: Offset(200)}
    ids = {name: topic.topic_id for name, topic in world.kafka.topics.items()}
    (source,) = marked(positions, ids=ids)
    sources = (replace(source, id=SourceId("id of car-sightings/0")),)
    found = CommitMarker(
        Epoch(1), Incarnation("a"), BatchId(1), positions, positions, positions, None, None, {},
        BatchId(1), None, Totals(), NOW, "digest", sources=sources, letters=ids[NAMES.dead_letters],
        letters_from={0: Offset(needed)},
    )  # fmt: skip
    return encode_marker(found)


def test_purge_removes_what_no_rebuild_needs(dlq: Caller, world: World) -> None:
    """From the oldest on; a dry run removes nothing."""
    world.write(NAMES.markers, marker(world, 2))
    dry = dlq("purge", "moving", "--all", "--dry-run", "-o", "json").data
    assert (dry["removed"], dry["kept_for_a_rebuild"]) == (2, 1)
    assert dlq("purge", "moving", "--all").code == 65
    assert len(world.records(NAMES.dead_letters)) == 3
    assert "removed 2 dead letters\n  1 stay" in dlq("purge", "moving", "--all", "--yes").out
    assert [record.offset for record in world.records(NAMES.dead_letters)] == [2]


def test_purge_refuses_what_a_rebuild_needs(dlq: Caller, world: World) -> None:
    """With the reason, and when they can be removed."""
    world.write(NAMES.markers, marker(world, 0))
    called = dlq("purge", "moving", "--all", "--yes")
    assert called.code == 65
    assert "a rebuild of the state needs" in called.err
    assert len(world.records(NAMES.dead_letters)) == 3


def test_purge_before_a_time_keeps_younger_dead_letters(dlq: Caller, world: World) -> None:
    """By the time of the dead letters."""
    found = dlq("purge", "moving", "--before", "2096-10-02T07:06:40.001Z", "--yes", "-o", "json")
    assert (found.data["removed"], found.data["kept_as_younger"]) == (1, 2)
    assert len(world.records(NAMES.dead_letters)) == 2


@pytest.mark.parametrize("options", [(), ("--all", "--before", "1h"), ("--before", "soon")])
def test_purge_requires_one_selection(dlq: Caller, options: tuple[str, ...]) -> None:
    """Never everything by default."""
    assert dlq("purge", "moving", "--yes", *options).code == 64
