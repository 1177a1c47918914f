"""`medusa events`, and `medusa history` of a fragment."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.event_log.event import LoggedEvent
from pipeline.event_log.log import EventWriter
from pipeline.ids import Millis, ParticipantId
from tests.unit.cli.twins import opener
from tests.unit.deploy.twins import World, write_project

Caller = Callable[..., Any]


@pytest.fixture
def world(medusa: Caller) -> World:
    """A world with the network of cars, one fragment of which was paused."""
    write_project(Path())
    world = World.new()
    for words in (("deploy", "--no-wait"), ("pause", "cars.moving", "--no-wait")):
        assert medusa(*words, opener=opener(world)).code == 0
    return world


def test_commands_write_what_they_have_done(medusa: Caller, world: World) -> None:
    """Once: what changes nothing is not logged."""
    assert medusa("pause", "cars.moving", "--no-wait", opener=opener(world)).code == 0
    called = medusa("events", "-o", "json", opener=opener(world))
    found = [json.loads(line) for line in called.out.splitlines()]
    assert [one["kind"] for one in found] == ["deployed", "paused"]
    assert found[0]["facts"]["version"] == "1"
    assert (found[1]["network"], found[1]["fragment"]) == ("cars", "moving")
    assert all("@" in one["by"] and one["time"].endswith("Z") for one in found)


def test_entries_are_selected(medusa: Caller, world: World) -> None:
    """By name, kind, number and time."""

    def kinds(*words: str) -> list[str]:
        called = medusa("events", *words, opener=opener(world))
        assert called.code == 0
        return [line.split()[1] for line in called.out.splitlines()]

    assert kinds() == ["deployed", "paused"]
    assert kinds("cars.moving") == ["deployed", "paused"]
    assert kinds("cars.stopped") == ["deployed"]
    assert kinds("-n", "1") == ["paused"]
    assert kinds("--kind", "deployed") == ["deployed"]
    assert kinds("--from", "1h") == ["deployed", "paused"]
    assert kinds("--from", "2999-01-01") == []
    assert "no such entry about vans" in medusa("events", "vans", opener=opener(world)).err
    assert medusa("events", "--kind", "of-later", opener=opener(world)).code == 64


def test_an_explanation_follows_each_entry(medusa: Caller, world: World) -> None:
    """In JSON it is a field."""
    text = medusa("events", "--explain", opener=opener(world)).out
    assert "until they are resumed" in text
    first = medusa("events", "--explain", "-o", "json", opener=opener(world)).out.splitlines()[0]
    assert json.loads(first)["explanation"].startswith("A version of a network")


def test_following_ends_in_time(medusa: Caller, world: World) -> None:
    """Also when nothing was logged yet."""
    for there in (world, World.new()):
        called = medusa("events", "-f", "--timeout", "0.1", opener=opener(there))
        assert called.code == 0
    assert called.out == ""


def test_records_that_are_no_entries_are_counted(medusa: Caller, world: World) -> None:
    """On stderr."""
    world.kafka.producer(1.0).send("local.medusa-events", None, b"?", partition=0)  # type: ignore[arg-type] # its name
    assert "1 record of its topic not shown" in medusa("events", opener=opener(world)).err


def test_the_nodes_of_a_fragment(medusa: Caller, world: World) -> None:
    """The newest first; none if the event log has none."""
    empty = medusa("history", "cars.moving", opener=opener(world))
    assert empty.code == 0
    assert "the event log has no claim of cars.moving" in empty.out + empty.err
    writer = EventWriter(ParticipantId("local"), world.kafka, world.kafka.producer(1.0))
    for node, epoch, why in (("a", 1, "it had no owner"), ("b", 2, "moved from node a")):
        facts = (("epoch", str(epoch)),)
        writer.send(LoggedEvent(Millis(epoch), "claimed", "x", "cars", "moving", node, why, facts))
        parts = (("since_last_batch", 700),)
        writer.send(
            LoggedEvent(Millis(epoch), "started", "x", "cars", "moving", node, "", facts, parts)
        )
    found = medusa("history", "cars.moving", "-o", "json", opener=opener(world)).data["nodes"]
    assert [(one["node"], one["epoch"], one["gap_ms"]) for one in found] == [
        ("b", 2, 700),
        ("a", 1, 700),
    ]
    shown = medusa("history", "cars.moving", "-n", "1", opener=opener(world)).out
    assert "moved from node a" in shown
    assert "0.7s" in shown
    assert "it had no owner" not in shown
