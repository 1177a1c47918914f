"""Stateless fragments on the real stack: results, dead letters, schema changes, functions."""

import json
import time
import warnings
from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline.catalog.fragment_status import LaneState
from pipeline.deploy.pause import pause, resume
from pipeline.ids import FragmentName
from tests.system.lanes.conftest import NODE
from tests.system.support import OWNER, READING, Installation, network_id, readings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # the driver imports deprecated modules
    from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
    from confluent_kafka.schema_registry.avro import AvroSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("node"), pytest.mark.timeout(600)]

DOCUMENT = """
network: {name}
streams:
  readings:
    topic: {name}-in
    schema: reading.avsc
    event_time: at
    lateness: 1s
    idle_after: 10s
    partitions: 2
boxes:
  halved:
    map: readings
    select: {{sensor: sensor, half: 100 / value, far: 100 / (value - 1000), at: at}}
outputs: {{halved: {{topic: {name}-out, partitions: 2}}}}
"""
FUNCTIONS = """
network: functions
streams:
  readings:
    topic: functions-in
    schema: reading.avsc
    event_time: at
    lateness: 1s
    idle_after: 10s
    partitions: 2
boxes:
  rated:
    python: readings
    function: rating.py:rate
    columns: {sensor: STRING NOT NULL, level: INT NOT NULL, told: ARRAY<STRING>}
    timeout: 2s
  shown: {map: rated, select: [sensor, level, told]}
  counts: {aggregate: rated, window: 1s, by: [sensor], compute: {n: count(*), levels: sum(level)}}
  judged:
    python: counts
    function: rating.py:judge
    columns: {sensor: STRING, n: BIGINT}
    key: [sensor]
outputs:
  shown: {topic: functions-shown, partitions: 2}
  judged: {topic: functions-judged}
"""
RATING = """
import os, sys, time
import pyarrow as pa
import pyarrow.compute as pc

print("a line that is no answer")

def rate(batch):
    levels = []
    for value in batch.column("value").to_pylist():
        print("rated", value)
        if value == 7:
            raise ValueError("seven is\\nno value")
        if value == 8:
            os._exit(3)
        if value == 9:
            time.sleep(3600)
        if value == 10:
            sys.exit("ten")
        levels.append(None if value == 11 else value % 3)
    kept = [row for row, level in enumerate(levels) if level != 2]
    return pa.record_batch({
        "told": [[str(levels[row])] for row in kept],
        "level": [levels[row] for row in kept],
        "sensor": batch.column("sensor").take(pa.array(kept, pa.int64())),
        "__row": kept,
    })

def judge(batch):
    if "b" in batch.column("sensor").to_pylist():
        raise KeyError("b")
    return batch.select(["n", "sensor"])
"""
WITHIN_S = 60.0
DEAD = "local.mixed.halved.dlq"
MICROS = {"type": "long", "logicalType": "timestamp-micros"}


def _deploy(medusa: Installation, name: str) -> None:
    medusa.deploy(DOCUMENT.format(name=name), {"reading.avsc": READING})
    medusa.await_state(name, "halved", LaneState.RUNNING)


def test_invalid_records_are_dead_letters_and_valid_ones_are_published(
    medusa: Installation,
) -> None:
    """Each kind of invalid record is stored byte for byte with its reason; no valid one is lost."""
    _deploy(medusa, "bad")

    def reading(value: int, ahead_ms: int = 0) -> bytes:
        at = int(time.time() * 1000) + ahead_ms
        return medusa.encoded("bad-in-value", READING, {"sensor": "a", "value": value, "at": at})

    micros = {**READING, "fields": [*READING["fields"][:2], {"name": "at", "type": MICROS}]}
    unit = medusa.encoded("bad-in-value", micros, {"sensor": "a", "value": 1, "at": 1})
    good = [reading(value) for value in range(1, 20)]
    good.append(reading(20) + b"what follows a record is not looked at")
    bad: dict[str, tuple[bytes | None, str, str]] = {
        "empty_value": (None, "the value is empty", ""),
        "not_wire_format": (b"plain text", "zero byte", ""),
        "undecodable": (good[0][:7], "the bytes are no Reading: ", ""),
        "undecodable:2": (unit, "takes long (timestamp-micros) of the writer for", ""),
        "schema_not_found": (
            b"\x00\x00\x0f\x42\x40" + good[0][5:],
            "no schema with id 1000000",
            "",
        ),
        "evaluation_failed": (reading(0), "100 / value", "select.half"),
        "evaluation_failed:2": (reading(1000), "100 / (value - 1000)", "select.far"),
        "event_time_ahead": (reading(1, 86_400_000), "is more than 1h ahead", "event_time"),
    }
    for value in good:
        medusa.send("bad-in", value, key=b"k")
    for name, (spoilt, _, _) in bad.items():
        medusa.send("bad-in", spoilt, key=name.encode(), headers=(("trace", b"1"), ("none", None)))
    medusa.producer.flush(10)
    medusa.wait_for(
        lambda: (
            len(medusa.records("local.bad.halved.dlq")) >= len(bad)
            and len(medusa.records("bad-out")) >= len(good)
        ),
        "all records are settled",
        within_s=WITHIN_S,
    )
    dead_letters = {
        (dead_letter.key or b"").decode(): dead_letter
        for dead_letter in medusa.records("local.bad.halved.dlq")
    }
    assert {name: dead_letter.value for name, dead_letter in dead_letters.items()} == {
        name: value for name, (value, _, _) in bad.items()
    }
    for name, (_, message, field) in bad.items():
        headers = {key: (value or b"").decode() for key, value in dead_letters[name].headers}
        assert headers["medusa.error.reason"] == name.partition(":")[0]
        assert message in headers["medusa.error.message"]
        assert headers.get("medusa.error.field", "") == field
        assert headers["medusa.error.box"] == "halved"
        assert headers["medusa.error.topic"] == "bad-in"
        assert dead_letters[name].headers[:2] == (("trace", b"1"), ("none", None))
    assert sorted(row["half"] for row in medusa.decoded("bad-out")) == sorted(
        100 / value for value in range(1, 21)
    )
    medusa.wait_for(
        lambda: (
            (s := medusa.status("bad", "halved")) is not None
            and (s.records_in, s.records_out, s.dead_letters) == (28, 20, 8)
        ),
        "the status counts them",
    )


def test_stateless_boxes_preserve_key_and_partition(medusa: Installation) -> None:
    """A record keeps its partition, its key, null or not, and its timestamp."""
    _deploy(medusa, "passed")
    sent = {}
    for number, reading in enumerate(readings(8)):
        value = medusa.encoded("passed-in-value", READING, {**reading, "value": number + 1})
        key, partition = (None if number % 2 else b"key"), number % 2
        medusa.send("passed-in", value, key=key, partition=partition)
        sent[100 / (number + 1)] = (key, partition, reading["at"])
    medusa.producer.flush(10)
    medusa.wait_for(lambda: len(medusa.records("passed-out")) == 8, "all came", within_s=WITHIN_S)
    rows = zip(medusa.records("passed-out"), medusa.decoded("passed-out"), strict=True)
    assert {
        row["half"]: (record.key, record.partition, record.timestamp_ms) for record, row in rows
    } == sent


def test_a_producer_may_switch_to_a_newer_schema_while_the_lane_runs(medusa: Installation) -> None:
    """The new id is fetched during the batch: no record is lost, no lane restarts."""
    _deploy(medusa, "newer")
    newer = {
        **READING,
        "fields": [*READING["fields"], {"name": "unit", "type": "string", "default": "C"}],
    }
    first, second = readings(2)
    medusa.send("newer-in", medusa.encoded("newer-in-value", READING, {**first, "value": 1}))
    medusa.producer.flush(10)
    medusa.wait_for(lambda: len(medusa.records("newer-out")) == 1, "the first", within_s=WITHIN_S)
    value = medusa.encoded("newer-in-value", newer, {**second, "value": 2, "unit": "K"})
    medusa.send("newer-in", value)
    medusa.producer.flush(10)
    medusa.wait_for(lambda: len(medusa.records("newer-out")) == 2, "the second", within_s=WITHIN_S)
    status = medusa.status("newer", "halved")
    assert status is not None
    assert (status.restarts, status.epoch) == (0, 1)


def _as_newer_clients_write(
    medusa: Installation, topic: str, reading: dict[str, Any]
) -> tuple[bytes, tuple[str, bytes]]:
    """A reading and the header with its schema's GUID, both by Confluent's own client."""
    headers: list[tuple[str, str | bytes | None]] = []
    context = SerializationContext(topic, MessageField.VALUE, headers)
    settings = {"schema.id.serializer": header_schema_id_serializer}
    at = datetime.fromtimestamp(reading["at"] / 1000, UTC)
    with SchemaRegistryClient({"url": medusa.stack.registry_url}) as registry:
        write = AvroSerializer(registry, json.dumps(READING), conf=settings)
        body = write({**reading, "at": at}, context)
    ((name, guid),) = headers
    assert body is not None
    assert isinstance(guid, bytes)
    return body, (name, guid)


def test_a_schema_may_be_named_by_its_guid(medusa: Installation) -> None:
    """In a header or a prefix, as newer clients do, mixed with records that have ids."""
    _deploy(medusa, "named")
    one, other, known = readings(3)
    medusa.send("named-in", medusa.encoded("named-in-value", READING, {**known, "value": 1}))
    body, (name, guid) = _as_newer_clients_write(medusa, "named-in", {**one, "value": 2})
    medusa.send("named-in", body, headers=((name, guid),))
    framed = medusa.encoded("named-in-value", READING, {**other, "value": 4})
    medusa.send("named-in", guid + framed[5:])
    unknown = b"\x01" + bytes(16)
    medusa.send("named-in", framed[5:], headers=((name, unknown),))
    medusa.producer.flush(10)
    dead = "local.named.halved.dlq"
    medusa.wait_for(
        lambda: len(medusa.records("named-out")) == 3 and len(medusa.records(dead)) == 1,
        "all came",
        within_s=WITHIN_S,
    )
    assert sorted(row["half"] for row in medusa.decoded("named-out")) == [25, 50, 100]
    (dead_letter,) = medusa.records(dead)
    headers_of = dict(dead_letter.headers)
    assert (dead_letter.value, headers_of[name]) == (framed[5:], unknown)
    assert headers_of["medusa.error.reason"] == b"schema_not_found"
    assert headers_of["medusa.error.schema"] == b"00000000-0000-0000-0000-000000000000"


def test_schemas_of_other_subjects_cost_a_batch_at_most_two_lookups(medusa: Installation) -> None:
    """Six registered ids among two missing ones; id 0 is fetched like any other."""
    _deploy(medusa, "mixed")
    network, fragment = network_id("mixed"), FragmentName("halved")
    pause(network, fragment, medusa.catalog)
    medusa.await_state("mixed", "halved", LaneState.STOPPED)
    for number, reading in enumerate(readings(6)):
        extra = {"name": f"extra_{number}", "type": "string", "default": ""}
        schema = {**READING, "fields": [*READING["fields"], extra]}
        record = {**reading, "value": 1 + number, extra["name"]: "x"}
        medusa.send("mixed-in", medusa.encoded(f"mixed-other-{number}", schema, record))
    known = medusa.encoded("mixed-in-value", READING, {**readings(1)[0], "value": 7})
    for prefix in (b"\x00\x00\x00\x00\x00", b"\x00\x7f\xff\xff\xff"):
        medusa.send("mixed-in", prefix + known[5:])
    medusa.producer.flush(10)
    resume(network, fragment, medusa.catalog)
    medusa.wait_for(
        lambda: len(medusa.records("mixed-out")) == 6 and len(medusa.records(DEAD)) == 2,
        "all came",
        within_s=WITHIN_S,
    )
    reasons = [dict(record.headers)["medusa.error.reason"] for record in medusa.records(DEAD)]
    assert reasons == [b"schema_not_found"] * 2
    assert {0, 0x7FFFFFFF} <= medusa.catalog.missing_schemas.all()
    log = (medusa.folder / "logs" / f"node-{NODE}.log").read_text()
    rounds = [line for line in log.splitlines() if "[mixed.halved] new schemas" in line]
    assert 1 <= len(rounds) <= 2


def test_an_unchanged_deploy_changes_and_restarts_nothing(medusa: Installation) -> None:
    """Deploy is idempotent."""
    _deploy(medusa, "twice")
    revision = medusa.catalog.networks.revision(OWNER)
    again = medusa.deploy(DOCUMENT.format(name="twice"), {"reading.avsc": READING})
    assert (again.changed, again.version, again.created) == (False, 1, ())
    assert medusa.catalog.networks.revision(OWNER) == revision


def test_user_functions_run_isolated_and_their_errors_are_dead_letters(
    medusa: Installation,
) -> None:
    """Only the row at which a function fails is a dead letter; the lanes continue."""
    (medusa.folder / "documents").mkdir(exist_ok=True)
    (medusa.folder / "documents" / "rating.py").write_text(RATING)
    medusa.deploy(FUNCTIONS, {"reading.avsc": READING})
    (medusa.folder / "documents" / "rating.py").unlink()
    now_ms = int(time.time() * 1000) // 1000 * 1000 - 60_000
    good = [value for value in range(60) if not 7 <= value <= 11 and value % 3 != 2]
    for value in (*range(60), 600):
        at_ms = now_ms + (value * 10 if value < 60 else 30_000)
        reading = {"sensor": "abc"[value % 3], "value": value, "at": at_ms}
        encoded = medusa.encoded("functions-in-value", READING, reading)
        medusa.send("functions-in", encoded, partition=0, key=str(value).encode())
    medusa.send("functions-in", encoded, partition=1, key=b"600")
    medusa.producer.flush(10)
    medusa.wait_for(
        lambda: (
            len(medusa.records("local.functions.judged.dlq")) >= 6
            and len(medusa.records("functions-shown")) >= len(good) + 2
        ),
        "windows, and rows without them",
        within_s=2 * WITHIN_S,
    )
    keys = [record.key or b"" for record in medusa.records("functions-shown")]
    assert sorted(keys) == sorted([*(str(value).encode() for value in good), b"600", b"600"])
    first, *_ = medusa.decoded("functions-shown")
    assert first == {"sensor": "a", "level": 0, "told": ["0"]}
    assert medusa.decoded("functions-judged") == [{"sensor": "a", "n": 19}]
    prefix = "function cannot be computed: rating.py:"
    refused = {
        "7": f"{prefix}rate: no value (rating.py:13)",
        "8": f"{prefix}rate: it ended its process with exit code 3",
        "9": f"{prefix}rate: it did not return within 2s",
        "10": f"{prefix}rate: SystemExit: ten (rating.py:19)",
        "11": f"{prefix}rate: column level is null, and declared NOT NULL",
    }
    for box, others in (
        ("shown", {}),
        ("judged", {"": f"{prefix}judge: KeyError: 'b' (rating.py:31)"}),
    ):
        messages = {
            (dead_letter.key or b"").decode(): (
                dict(dead_letter.headers)["medusa.error.message"] or b""
            ).decode()
            for dead_letter in medusa.records(f"local.functions.{box}.dlq")
        }
        assert messages == {**refused, **others}

        def reported(box: str = box, dead_letters: int = len(messages)) -> bool:
            status = medusa.status("functions", box)
            return status is not None and (status.restarts, status.dead_letters) == (
                0,
                dead_letters,
            )

        medusa.wait_for(reported, f"{box} reports its dead letters", within_s=WITHIN_S)
