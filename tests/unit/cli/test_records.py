import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from brokers.records import KafkaRecord
from pipeline.catalog.catalog import Catalog
from pipeline.errors import UnavailableError
from pipeline.ids import Offset, TopicName
from pipeline.operations.connections import Connections
from pipeline.operations.records.decoding import decode_record
from tests.unit.cli.twins import opener
from tests.unit.deploy.twins import NOW, World, write_project
from tests.unit.operations.twins import TwinConnections, TwinRecomputer

Caller = Callable[..., Any]
SIGHTINGS, MOVING = TopicName("car-sightings"), TopicName("moving-cars")
CAR = {"car": "a", "speed": 1.5, "seen_at": "2026-01-01T00:00:00Z"}


@pytest.fixture
def world(medusa: Caller) -> World:
    """A world with the small network deployed."""
    found = World.new()
    found.kafka.add(SIGHTINGS, 1)
    write_project(Path())
    assert medusa("deploy", "--no-wait", opener=opener(found)).code == 0
    return found


def _lines(*values: object) -> str:
    Path("in.jsonl").write_text(
        "".join(f"{v if isinstance(v, str) else json.dumps(v)}\n" for v in values), encoding="utf-8"
    )
    return "in.jsonl"


def test_tail_shows_produced_records(medusa: Caller, world: World) -> None:
    """JSON in, Avro with the registered schema in between, the same JSON out."""
    file = _lines(CAR, {**CAR, "car": "b"})
    sent = medusa("produce", "sightings", "-f", file, "--key", "car", opener=opener(world))
    assert (sent.code, sent.out) == (0, "2 records sent to car-sightings\n")
    first, _ = world.records(SIGHTINGS)
    assert first.value is not None
    assert first.value[0] == 0
    shown = medusa("tail", "sightings", "--no-follow", "-o", "json", opener=opener(world))
    found = [json.loads(line) for line in shown.out.splitlines()]
    assert [(r["offset"], r["key"], r["value"]["car"]) for r in found] == [
        (0, "a", "a"),
        (1, "b", "b"),
    ]
    assert found[0]["value"]["seen_at"].startswith("2026-01-01T00:00:00")
    assert found[0]["timestamp"] == "2023-11-14T22:13:20.000Z"


def test_bad_lines_are_reported_by_number_and_the_good_are_sent(
    medusa: Caller, world: World
) -> None:
    """Every bad line has its number, path and reason; the exit code is 65."""
    file = _lines(CAR, "{", "", {**CAR, "speed": "fast"}, {**CAR, "car": None}, CAR)
    called = medusa("produce", "sightings", "-f", file, "--key", "car", "-o", "json",
                    opener=opener(world))  # fmt: skip
    assert called.code == 65
    assert called.data["sent"] == 2
    assert [(b["line"], b["path"]) for b in called.data["bad"]] == [
        (2, ""),
        (4, "/speed"),
        (5, "/car"),
    ]
    assert "line 4, /speed" in called.err
    assert len(world.records(SIGHTINGS)) == 2


def test_a_dry_run_prints_how_many_would_be_sent(medusa: Caller, world: World) -> None:
    """The data contain it beside the number of sent records, 0."""
    arguments = ("produce", "sightings", "-f", _lines(CAR, {**CAR, "car": "b"}), "--dry-run")
    called = medusa(*arguments, opener=opener(world))
    assert (called.code, called.out) == (0, "2 records would be sent to car-sightings\n")
    data = medusa(*arguments, "-o", "json", opener=opener(world)).data
    assert (data["sent"], data["good"]) == (0, 2)
    assert world.records(SIGHTINGS) == []


@pytest.mark.parametrize("flag", ["--strict", "--dry-run"])
def test_strict_and_dry_runs_send_nothing(medusa: Caller, world: World, flag: str) -> None:
    """--strict sends all or nothing; --dry-run only checks."""
    called = medusa("produce", "sightings", "-f", _lines(CAR, "{"), flag, opener=opener(world))
    assert called.code == 65
    assert not world.records(SIGHTINGS)


def test_producing_to_a_topic_of_a_network_is_refused(medusa: Caller, world: World) -> None:
    """Its readers could reject such records; --yes overrides it."""
    arguments = ("produce", "moving-cars", "-f", _lines(CAR))
    refused = medusa(*arguments, opener=opener(world))
    assert refused.code == 65
    assert "topic moving-cars is written by cars.moving" in refused.err
    assert "--yes" in refused.err
    assert world.records(MOVING) == []
    assert medusa(*arguments, "--dry-run", opener=opener(world)).code == 0
    assert medusa(*arguments, "--yes", opener=opener(world)).code == 0
    assert len(world.records(MOVING)) == 1
    assert world.records(SIGHTINGS) == []


def test_produce_reads_stdin(medusa: Caller, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without -f lines are read from stdin; bytes that are not UTF-8 are a bad line."""
    data = json.dumps(CAR).encode() + b"\n\xff\xfe\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    called = medusa("produce", "sightings", opener=opener(world))
    assert called.code == 65
    assert "line 2: not UTF-8 text" in called.err
    assert len(world.records(SIGHTINGS)) == 1


def test_produce_requires_an_existing_schema_stream_and_key(medusa: Caller, world: World) -> None:
    """Each error lists the existing ones, before any line is read."""
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


def test_tail_shows_invalid_avro_with_the_reason(medusa: Caller, world: World) -> None:
    """Plain bytes, unknown ids and tombstones do not end a tail."""
    world.kafka.append(SIGHTINGS, b"k", b"plain")
    world.kafka.append(SIGHTINGS, None, b"\x00\x00\x00\x03\xe7abc")
    world.kafka.append(SIGHTINGS, b"\xff", None)
    world.kafka.append(SIGHTINGS, None, b"\x00\x00\x00\x00\x01\x02")
    shown = medusa("tail", "car-sightings", "--no-follow", "-o", "json", opener=opener(world))
    assert shown.code == 0
    plain, unknown, tombstone, broken = (json.loads(line) for line in shown.out.splitlines())
    assert (plain["key"], plain["value"]) == ("k", "cGxhaW4=")
    assert "zero byte" in plain["problem"]
    assert unknown["problem"] == "the registry has no schema with id 999"
    assert (tombstone["key"], tombstone["value"]) == ("/w==", None)
    assert broken["problem"]


def test_tail_has_a_count_a_start_and_a_timeout(medusa: Caller, world: World) -> None:
    """--count ends it, --from skips, and a count that is not reached in time ends with 75."""
    connect = opener(world)
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
    """As `tail` of Unix: the newest, in their order; fewer are no error."""
    connect = opener(world)
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


def _trades() -> World:
    """A topic with its schema, without any network."""
    world = World.new()
    world.kafka.add("trades", 1)
    world.registry.register("trades-value", TRADES)
    return world


TRADES = json.dumps(
    {
        "type": "record",
        "name": "Trade",
        "fields": [
            {"name": "symbol", "type": "string"},
            {"name": "price", "type": ["null", "double"], "default": None},
            {"name": "amount", "type": "int"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {
                "name": "side",
                "type": {"type": "enum", "name": "Side", "symbols": ["BUY", "SELL"]},
            },
        ],
    }
)


def _trade(symbol: str, price: float | None, amount: int = 1) -> dict[str, object]:
    at = "2026-01-01T00:00:00Z"
    return {"symbol": symbol, "price": price, "amount": amount, "at": at, "side": "BUY"}


def test_tail_filters_a_topic_of_no_network(medusa: Caller) -> None:
    """--where and --select take expressions over the columns of the topic's newest schema."""
    world = _trades()
    connect = opener(world)
    lines = [_trade("a", 10.0, 2), _trade("b", None), _trade("a", 30.5, 3), _trade("a", 11.0)]
    medusa("produce", "trades", "-f", _lines(*lines), opener=connect)

    def shown(*options: str) -> list[object]:
        called = medusa("tail", "trades", "--no-follow", *options, "-o", "json", opener=connect)
        assert called.code == 0, called.err
        return [json.loads(line)["value"] for line in called.out.splitlines()]

    where = ("--where", "symbol = 'a' AND price < 20", "--select")
    assert shown(*where, "price,amount") == [
        {"price": 10.0, "amount": 2},
        {"price": 11.0, "amount": 1},
    ]
    assert shown(*where, "total=greatest(price * amount, 0),at", "--select", "side") == [
        {"total": 20.0, "at": "2026-01-01T00:00:00.000Z", "side": "BUY"},
        {"total": 11.0, "at": "2026-01-01T00:00:00.000Z", "side": "BUY"},
    ]
    assert shown("-n", "1", "--where", "price > 10.5", "--select", "price") == [{"price": 11.0}]
    assert shown("--count", "1", "--where", "price IS NULL") == [_shown_trade("b", None)]
    later = "at > TIMESTAMP '2026-01-01 00:00:00'"
    assert shown("--where", later) == []


def _shown_trade(symbol: str, price: float | None) -> dict[str, object]:
    return {**_trade(symbol, price), "at": "2026-01-01T00:00:00.000Z"}


def test_records_without_a_value_of_the_condition_are_counted(medusa: Caller) -> None:
    """A row that fails, a value that is not Avro, a tombstone without columns."""
    world = _trades()
    connect = opener(world)
    medusa("produce", "trades", "-f", _lines(_trade("a", 1.0, 0), _trade("b", 9.0, 2)),
           opener=connect)  # fmt: skip
    world.kafka.append(TopicName("trades"), None, b"plain")
    world.kafka.append(TopicName("trades"), None, None)
    called = medusa("tail", "trades", "--no-follow", "--where", "10 / amount > 1", opener=connect)
    assert called.code == 0
    assert len(called.out.splitlines()) == 1
    assert "2 records not shown, since the condition has no value" in called.err
    assert "the first is 0@0: division by zero" in called.err
    failing = ("--select", "q=10 DIV amount", "-o", "json", "-n", "4")
    lines = medusa("tail", "trades", *failing, opener=connect).out.splitlines()
    fails, good, plain, tombstone = (json.loads(line) for line in lines)
    assert (fails["value"], fails["problem"]) == (None, "division by zero")
    assert good["value"] == {"q": 5}
    assert "zero byte" in plain["problem"]
    assert tombstone["value"] is None


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--where", "prize > 1"), "there is: price"),
        (("--where", "amount + 1"), "needs a condition"),
        (("--where", ""), "the expression is empty"),
        (("--where", "symbol RLIKE 'a'"), "RLIKE is not computed here"),
        (("--select", "amount,prize"), "there is no column prize"),
        (("--select", "amount + 1"), "NAME=EXPRESSION"),
        (("--select", "price,price=amount"), "names price twice"),
    ],
)
def test_a_wrong_expression_is_refused_before_anything_is_read(
    medusa: Caller, options: tuple[str, ...], why: str
) -> None:
    """With the possible choices, and exit code 65."""
    world = _trades()
    called = medusa("tail", "trades", *options, opener=opener(world))
    assert called.code == 65, called.out
    assert why in called.err


class WithoutCatalog(TwinConnections):
    """Connections without ZooKeeper."""

    @property
    def catalog(self) -> Catalog:
        """Raise the error of an unreachable server."""
        raise UnavailableError("no answer", place="ZooKeeper")

    @catalog.setter
    def catalog(self, _catalog: Catalog) -> None:
        """Ignore the catalog of the double."""


def test_a_topic_is_tailed_while_zookeeper_does_not_answer(medusa: Caller) -> None:
    """A stream's name cannot be resolved then, and producing is refused."""
    world = _trades()
    down = cast("Connections", WithoutCatalog(world, TwinRecomputer()))
    medusa("produce", "trades", "-f", _lines(_trade("a", 1.0)), opener=opener(world))
    shown = medusa("tail", "trades", "-n", "1", opener=lambda *_: down)
    assert shown.code == 0, shown.err
    assert '"symbol":"a"' in shown.out
    assert medusa("tail", "sightings", "-n", "1", opener=lambda *_: down).code == 69
    assert medusa("produce", "trades", "-f", "in.jsonl", opener=lambda *_: down).code == 69
    assert len(world.records(TopicName("trades"))) == 1


def test_filtering_a_topic_requires_its_schema(medusa: Caller) -> None:
    """Which columns exist is unknown without it."""
    world = _trades()
    world.kafka.add("bare")
    called = medusa("tail", "bare", "--where", "TRUE", opener=opener(world))
    assert called.code == 65
    assert "no registered schema" in called.err


def test_a_table_line_is_short(medusa: Caller, world: World) -> None:
    """Time, partition@offset, key, value."""
    medusa("produce", "sightings", "-f", _lines(CAR), "--key", "car", opener=opener(world))
    line = medusa("tail", "sightings", "-n", "1", opener=opener(world)).out
    assert NOW
    assert line.startswith('2023-11-14T22:13:20.000Z  0@0  a  {"car":"a","speed":1.5,')


def test_of_a_repeated_header_all_values_are_shown() -> None:
    """Kafka allows it, and a dead letter keeps the original's headers beside Medusa's."""
    headers = (("a", b"1"), ("b", None), ("a", b"2"))
    record = KafkaRecord(TopicName("t"), 0, Offset(0), NOW, None, None, headers)
    shown = decode_record(record, World.new().registry)
    assert shown.headers == {"a": ["1", "2"], "b": None}
