import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import medusa_streams
from connectors.generators.catalogue import KINDS
from pipeline.errors import ExitCode
from pipeline.ids import TopicName
from tests.unit.cli.twins import opener
from tests.unit.deploy.twins import World, write_project

Caller = Callable[..., Any]
AT = ("--start-at", "2026-01-01T00:00:00Z")


def test_json_lines_are_printed(medusa: Caller) -> None:
    """Equal arguments give equal lines; the number is told on stderr."""
    called = medusa("generate", "cars", "--records", "5", *AT)
    assert called.code == ExitCode.DONE
    lines = [json.loads(line) for line in called.out.splitlines()]
    assert len(lines) == 5
    assert {"car", "road", "seen_at"} < set(lines[0])
    assert called.err == "5 records of cars\n"
    assert medusa("generate", "cars", "--records", "5", *AT).out == called.out
    assert medusa("generate", "cars", "--records", "5", *AT, "--seed", "2").out != called.out


def test_records_that_are_not_awaited_have_just_been_made(medusa: Caller) -> None:
    """None of them lies in the future."""
    called = medusa("generate", "calls", "--records", "40")
    latest = max(json.loads(line)["ended_at"] for line in called.out.splitlines())
    assert latest / 1_000 <= Path().stat().st_mtime + 60


def test_the_schema_is_printed(medusa: Caller) -> None:
    """For a file of a project."""
    assert medusa("generate", "clicks", "--schema").out == KINDS["clicks"].schema_json


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("boats",), "KIND"),
        (("cars", "--rate", "0"), "--rate"),
        (("cars", "--rate", "200000"), "--rate of cars is 0.01 to 100000"),
        (("cars", "--late", "1.5"), "--late"),
        (("cars", "--start-at", "yesterday"), "not an ISO 8601 time"),
        (("cars", "--start-at", "2026-01-01T00:00:00"), "needs a zone"),
    ],
)
def test_wrong_arguments_are_named(medusa: Caller, arguments: tuple[str, ...], says: str) -> None:
    """Nothing is made."""
    called = medusa("generate", *arguments)
    assert called.code == ExitCode.USAGE
    assert says in called.err
    assert not called.out


@pytest.fixture
def world(medusa: Caller) -> World:
    """A world whose stream has the schema of the cars."""
    found = World.new()
    found.kafka.add(TopicName("car-sightings"), 1)
    write_project(Path())
    Path("sighting.avsc").write_text(KINDS["cars"].schema_json, encoding="utf-8")
    registered = medusa(
        "schema", "register", "car-sightings-value", "sighting.avsc", opener=opener(found)
    )
    assert registered.code == ExitCode.DONE, registered.err
    return found


def test_records_are_sent_to_a_topic(medusa: Caller, world: World) -> None:
    """As Avro, with the key of their kind; bad ones cannot be decoded."""
    called = medusa("generate", "cars", "--records", "20", "--to", "car-sightings", *AT,
                    "-o", "json", opener=opener(world))  # fmt: skip
    assert called.code == ExitCode.DONE, called.err
    assert called.data["sent"] == 20
    tail = medusa("tail", "car-sightings", "-n", "50", "-o", "json", opener=opener(world))
    found = [json.loads(line) for line in tail.out.splitlines()]
    assert len(found) == 20
    assert all(one["key"] == one["value"]["car"] for one in found)


def test_a_schema_that_does_not_fit_is_refused(medusa: Caller, world: World) -> None:
    """With what it lacks; nothing is sent."""
    called = medusa("generate", "calls", "--to", "car-sightings", opener=opener(world))
    assert called.code == ExitCode.BAD_INPUT
    assert "no field caller" in called.err


def test_ctrl_c_ends_it_cleanly() -> None:
    """What was made until then is complete, and the exit code is 0."""
    command = (sys.executable, "-m", medusa_streams.__name__, "generate", "cars", "--rate", "500")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        lines = [running.stdout.readline() for _ in range(3)]
        running.send_signal(signal.SIGINT)
        lines += running.stdout.read().splitlines()
        told = running.stderr.read()
        running.wait(60)
    assert running.returncode == ExitCode.DONE, told
    assert all(json.loads(line)["car"] for line in lines)
    assert f"{len(lines)} records of cars" in told.decode()
