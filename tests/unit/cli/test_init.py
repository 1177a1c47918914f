import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline.ids import TopicName
from schemas.avro import parse
from schemas.codec import encode
from schemas.wire import join
from tests.unit.cli.twins import opener
from tests.unit.deploy.twins import NOW, World, write_project

Caller = Callable[..., Any]


def test_init_writes_into_the_current_folder(medusa: Caller) -> None:
    """After `init` the next commands work without cd: settings and document are here."""
    called = medusa("init", "tolls", "-o", "json")
    assert called.code == 0, called.err
    assert Path("network.yaml").is_file()
    assert Path("schemas/sighting.avsc").is_file()
    assert Path("medusa.yaml").is_file()
    assert "producer.py" in called.data["files"]
    assert not list(Path().rglob("__*"))


def test_init_refuses_a_folder_with_a_project(medusa: Caller) -> None:
    """Nothing is overwritten, and nothing new is written."""
    Path("network.yaml").write_text("mine", encoding="utf-8")
    called = medusa("init", "tolls")
    assert called.code == 65
    assert "network.yaml" in called.err
    assert Path("network.yaml").read_text(encoding="utf-8") == "mine"
    assert not Path("schemas").exists()


def test_init_into_another_folder(medusa: Caller) -> None:
    """--into creates the folder and prints its name."""
    called = medusa("init", "tolls", "--into", "a/b")
    assert called.code == 0
    assert Path("a/b/network.yaml").is_file()
    assert "cd a/b" in called.out


def test_unknown_template_is_a_usage_error(medusa: Caller) -> None:
    """The templates that exist are named."""
    called = medusa("init", "nonsense")
    assert called.code == 64
    assert "tolls" in called.err


def test_a_folder_that_cannot_be_written_is_an_error(medusa: Caller) -> None:
    """A file in place of the folder is a problem of this machine, without a trace."""
    Path("taken").write_text("", encoding="utf-8")
    assert medusa("init", "tolls", "--into", "taken/x").code == 69


def test_a_blank_project_names_its_gaps_and_is_valid_once_they_are_filled(
    medusa: Caller,
) -> None:
    """Three values only; the box and the output fit any schema."""
    called = medusa("init", "blank")
    assert (called.code, called.err) == (0, "")
    assert "fill in the stream of network.yaml" in called.out
    assert "producer.py" not in called.out
    unfilled = medusa("show")
    assert unfilled.code == 65
    for key in ("topic", "subject", "event_time"):
        assert f"{key} of stream events has no value" in unfilled.err
    write_project(Path("other"))
    text = Path("network.yaml").read_text(encoding="utf-8")
    text = text.replace("topic:   ", "topic: cars").replace("event_time:  ", "event_time: seen_at ")
    text = text.replace("subject:   ", "schema: other/sighting.avsc ")
    Path("network.yaml").write_text(text, encoding="utf-8")
    shown = medusa("show")
    assert shown.code == 0, shown.err
    assert "[events-per-minute]" in shown.out
    assert medusa("plan", opener=opener(World.new())).code == 0


TRADES = json.dumps(
    {
        "type": "record",
        "name": "Trade",
        "fields": [
            {"name": "symbol", "type": "string"},
            {"name": "price", "type": "double"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
)


def _world(count: int) -> World:
    """A topic with one trade per second, every tenth of them four seconds late."""
    world = World.new()
    world.kafka.add("trades", 1)
    schema_id = world.registry.register("trades-value", TRADES)
    schema = parse(TRADES)
    for n in range(count):
        at_ms = NOW + 1_000 * n - (4_000 if n % 10 == 9 else 0)
        value = {"symbol": "ab"[n % 2], "price": 1.5, "at": at_ms}
        body = join(schema_id, encode(schema, value))
        key, came_ms = b"ab"[n % 2 : n % 2 + 1], NOW + 1_000 * n
        world.kafka.append(TopicName("trades"), key, body, timestamp_ms=came_ms)
    return world


def test_a_project_for_a_topic_is_measured_and_can_be_planned(medusa: Caller) -> None:
    """Schema from the registry, proposals from the records; `plan` needs no change."""
    connect = opener(_world(50))
    called = medusa("init", "--topic", "trades", "-o", "json", opener=connect)
    assert called.code == 0, called.err
    assert called.data["records"] == 50
    assert called.data["event_time"] == "at"
    assert (called.data["lateness"], called.data["idle_after"]) == ("5s", "3m")
    assert called.data["key"] == "symbol"
    text = Path("network.yaml").read_text(encoding="utf-8")
    assert "# Of 50 records 99.9 % were at most 3s behind the newest one before them" in text
    assert "bootstrap_servers: 127.0.0.1:9092" in Path("medusa.yaml").read_text(encoding="utf-8")
    planned = medusa("plan", opener=connect)
    assert planned.code == 0, planned.err
    assert "trades_per_minute" in planned.out
    assert medusa("init", "--topic", "trades", opener=connect).code == 65


def test_a_project_for_an_empty_topic_has_defaults_that_are_marked(medusa: Caller) -> None:
    """There are no records to measure."""
    called = medusa("init", "--topic", "trades", "--into", "new", opener=opener(_world(0)))
    assert called.code == 0, called.err
    assert "cd new && medusa deploy" in called.out
    assert "medusa tail trades-per-minute" in called.out
    assert "holds no records yet" in Path("new/network.yaml").read_text(encoding="utf-8")


def test_a_topic_needs_a_schema_and_has_to_exist(medusa: Caller) -> None:
    """Each is an error, and no file is written."""
    world = _world(1)
    world.kafka.add("bare")
    connect = opener(world)
    bare = medusa("init", "--topic", "bare", opener=connect)
    assert bare.code == 65
    assert "topic bare has no registered schema" in bare.err
    missing = medusa("init", "--topic", "trade", opener=connect)
    assert missing.code == 65
    assert "there is no topic trade" in missing.err
    wrong = medusa("init", "--topic", "trades", "--event-time", "price", opener=connect)
    assert wrong.code == 65
    assert "needs a TIMESTAMP" in wrong.err
    assert medusa("init", "tolls", "--topic", "trades", opener=connect).code == 64
    assert medusa("init", "--event-time", "at", opener=connect).code == 64
    assert medusa("init", "blank", "--registry", "http://registry.test:1").code == 64
    assert not Path("network.yaml").exists()


def test_the_settings_in_force_are_written_without_secrets(medusa: Caller) -> None:
    """Addresses given for this call are written, so that later calls do not need them."""
    called = medusa(
        "init", "--topic", "trades", "--registry", "http://me:secret@registry.test:8081",
        "--set", "kafka.bootstrap_servers=broker.test:9093", "--set", "kafka.user=o'neill",
        opener=opener(_world(1)),
    )  # fmt: skip
    assert called.code == 0, called.err
    shown = medusa("config", "show", "-o", "json").data
    settings = {one["name"]: one["value"] for one in shown["settings"]}
    assert settings["kafka.bootstrap_servers"] == "broker.test:9093"
    assert settings["kafka.user"] == "o'neill"
    assert settings["registry.url"] == "http://registry.test:8081"
    assert settings["registry.user"] == "me"
    assert "secret" not in Path("medusa.yaml").read_text(encoding="utf-8")
