import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from brokers.records import KafkaRecord
from pipeline.cli.decoding import decoded
from pipeline.ids import Offset, TopicName
from tests.unit.cli.twins import TwinLog, opener
from tests.unit.deploy.twins import NOW, World, write_project

Caller = Callable[..., Any]
CAR = {"car": "a", "speed": 1.5, "seen_at": "2026-01-01T00:00:00Z"}


@pytest.fixture
def world(medusa: Caller) -> World:
    """A world with the small network deployed."""
    found = World.new()
    write_project(Path())
    assert medusa("deploy", "--no-wait", opener=opener(found)).code == 0
    return found


def _lines(*values: object) -> str:
    Path("in.jsonl").write_text(
        "".join(f"{v if isinstance(v, str) else json.dumps(v)}\n" for v in values), encoding="utf-8"
    )
    return "in.jsonl"


def test_what_is_produced_is_what_tail_shows(medusa: Caller, world: World) -> None:
    """JSON in, Avro with the registered schema in between, the same JSON out."""
    log = TwinLog()
    file = _lines(CAR, {**CAR, "car": "b"})
    sent = medusa("produce", "sightings", "-f", file, "--key", "car", opener=opener(world, log))
    assert (sent.code, sent.out) == (0, "2 records sent to car-sightings\n")
    assert log.records[0].value is not None
    assert log.records[0].value[0] == 0
    shown = medusa("tail", "sightings", "--no-follow", "-o", "json", opener=opener(world, log))
    found = [json.loads(line) for line in shown.out.splitlines()]
    assert [(r["offset"], r["key"], r["value"]["car"]) for r in found] == [
        (0, "a", "a"),
        (1, "b", "b"),
    ]
    assert found[0]["value"]["seen_at"].startswith("2026-01-01T00:00:00")
    assert found[0]["timestamp"] == "2023-11-14T22:13:20.000Z"


def test_bad_lines_are_told_by_number_and_the_good_are_sent(medusa: Caller, world: World) -> None:
    """Every bad line has its number, path and reason; the exit code is 65."""
    log = TwinLog()
    file = _lines(CAR, "{", "", {**CAR, "speed": "fast"}, {**CAR, "car": None}, CAR)
    called = medusa("produce", "sightings", "-f", file, "--key", "car", "-o", "json",
                    opener=opener(world, log))  # fmt: skip
    assert called.code == 65
    assert called.data["sent"] == 2
    assert [(b["line"], b["path"]) for b in called.data["bad"]] == [
        (2, ""),
        (4, "/speed"),
        (5, "/car"),
    ]
    assert "line 4, /speed" in called.err
    assert len(log.records) == 2


@pytest.mark.parametrize("flag", ["--strict", "--dry-run"])
def test_nothing_is_sent_when_that_was_asked(medusa: Caller, world: World, flag: str) -> None:
    """--strict sends all or nothing; --dry-run only checks."""
    log = TwinLog()
    called = medusa("produce", "sightings", "-f", _lines(CAR, "{"), flag, opener=opener(world, log))
    assert called.code == 65
    assert not log.records


def test_produce_reads_stdin(medusa: Caller, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without -f lines come from stdin; bytes that are no text are a bad line."""
    log = TwinLog()
    data = json.dumps(CAR).encode() + b"\n\xff\xfe\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    called = medusa("produce", "sightings", opener=opener(world, log))
    assert called.code == 65
    assert "line 2: not UTF-8 text" in called.err
    assert len(log.records) == 1


def test_produce_needs_a_schema_a_stream_and_a_key_that_exist(medusa: Caller, world: World) -> None:
    """Each mistake is told with what exists instead, before anything is read."""
    connect = opener(world)
    unknown = medusa("produce", "sighting", "-f", _lines(CAR), opener=connect)
    assert unknown.code == 65
    assert "there is: sightings" in unknown.err
    key = medusa("produce", "sightings", "-f", _lines(CAR), "--key", "plate", opener=connect)
    assert key.code == 65
    assert "car, speed, seen_at" in key.err
    world.kafka.add("bare")
    bare = medusa("produce", "bare", "-f", _lines(CAR), opener=connect)
    assert bare.code == 65
    assert "no registered schema" in bare.err
    assert medusa("produce", "sightings", "-f", "missing.jsonl", opener=connect).code == 65


def test_tail_shows_what_is_no_avro_with_the_reason(medusa: Caller, world: World) -> None:
    """Plain bytes, unknown ids and tombstones do not end a tail."""
    log = TwinLog()
    topic = TopicName("car-sightings")
    log.send(topic, b"k", b"plain")
    log.send(topic, None, b"\x00\x00\x00\x03\xe7abc")
    log.send(topic, b"\xff", None)
    log.send(topic, None, b"\x00\x00\x00\x00\x01\x02")
    shown = medusa("tail", "car-sightings", "--no-follow", "-o", "json", opener=opener(world, log))
    assert shown.code == 0
    plain, unknown, tombstone, broken = (json.loads(line) for line in shown.out.splitlines())
    assert (plain["key"], plain["value"]) == ("k", "cGxhaW4=")
    assert "zero byte" in plain["problem"]
    assert unknown["problem"] == "the registry has no schema with id 999"
    assert (tombstone["key"], tombstone["value"]) == ("/w==", None)
    assert broken["problem"]


def test_tail_counts_starts_and_gives_up(medusa: Caller, world: World) -> None:
    """--count ends it, --from skips, and a count that is not reached in time ends with 75."""
    log = TwinLog()
    connect = opener(world, log)
    medusa("produce", "sightings", "-f", _lines(CAR, CAR, CAR), opener=connect)
    assert len(medusa("tail", "sightings", "--count", "2", opener=connect).out.splitlines()) == 2
    now = medusa("tail", "sightings", "--from", "now", "--no-follow", opener=connect)
    assert (now.code, now.out) == (0, "")
    later = medusa("tail", "sightings", "--from", "2030-01-01", "--no-follow", opener=connect)
    assert later.out == ""
    few = medusa("tail", "sightings", "--count", "9", "--timeout", "0.2", opener=connect)
    assert few.code == 75
    assert "only 3 of 9" in few.err
    assert medusa("tail", "sightings", "--from", "soon", opener=connect).code == 64


def test_n_shows_the_last_records_and_ends(medusa: Caller, world: World) -> None:
    """As `tail` does: the newest, in their order; fewer are no mistake."""
    log = TwinLog()
    connect = opener(world, log)
    cars = [{**CAR, "car": name} for name in "abcde"]
    medusa("produce", "sightings", "-f", _lines(*cars), opener=connect)

    def shown(*options: str) -> list[str]:
        called = medusa("tail", "sightings", *options, "-o", "json", opener=connect)
        assert called.code == 0, called.err
        return [json.loads(line)["value"]["car"] for line in called.out.splitlines()]

    assert shown("-n", "3") == ["c", "d", "e"]
    assert shown("--last", "9") == list("abcde")
    assert shown("-n", "2", "--from", "now") == []
    assert shown("-n", "2", "-f", "--timeout", "0.2") == ["d", "e"]
    both = medusa("tail", "sightings", "-n", "2", "--count", "2", opener=connect)
    assert both.code == 64
    assert "--count N waits" in both.err


def test_a_table_line_is_short(medusa: Caller, world: World) -> None:
    """Time, partition@offset, key, value."""
    log = TwinLog()
    medusa("produce", "sightings", "-f", _lines(CAR), "--key", "car", opener=opener(world, log))
    line = medusa("tail", "sightings", "-n", "1", opener=opener(world, log)).out
    assert NOW
    assert line.startswith('2023-11-14T22:13:20.000Z  0@0  a  {"car":"a","speed":1.5,')


def test_of_a_repeated_header_all_values_are_shown() -> None:
    """Kafka allows it, and a dead letter keeps the original's headers beside ours."""
    headers = (("a", b"1"), ("b", None), ("a", b"2"))
    record = KafkaRecord(TopicName("t"), 0, Offset(0), NOW, None, None, headers)
    shown = decoded(record, World.new().registry)
    assert shown.data["headers"] == {"a": ["1", "2"], "b": None}
