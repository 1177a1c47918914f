"""Redrive on the real stack: once, byte for byte, and only to the fragment that refused."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from brokers.kafka.transactions import TransactionalWriter
from pipeline.catalog.fragment_status import LaneState
from pipeline.cli.main import run
from pipeline.clock import Deadline
from pipeline.deploy.pause import pause, resume
from pipeline.errors import DeployError, FencedError
from pipeline.ids import FragmentId, FragmentName, SchemaId
from pipeline.lanes.dead_letters import PREFIX, REDRIVEN_FROM, REDRIVEN_ORIGIN
from pipeline.lanes.result_headers import LATE_RESULT
from pipeline.names import FragmentNames
from pipeline.planner.state import NO_CHOICES, Choices, OnChange
from pipeline.system_clock import SystemClock
from schemas import wire
from tests.system.support import READING, Installation, network_id, readings

pytestmark = [pytest.mark.system, pytest.mark.timeout(600), pytest.mark.usefixtures("node")]

DOCUMENT = """
network: {name}
streams:
  readings: {{topic: {name}-in, schema: reading.avsc, event_time: at, lateness: 1h, partitions: 2}}
boxes:
  halved:
    map: readings
    select: {{sensor: sensor, half: 100 / value, at: at}}
outputs: {{halved: {{topic: {name}-out, partitions: 2}}}}
"""
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "parts", "type": {"type": "array", "items": "int"}},
        READING["fields"][-1],
    ],
}
ORDERS = """
network: orders
streams:
  orders: {{topic: orders-in, schema: order.avsc, event_time: at, lateness: 1h, partitions: 1}}
boxes:
  parts:
    flat_map: orders
    each: {{part: parts}}
    at: n
    select: {{id: id, n: n, share: "{share}"}}
  by_id: {{route: orders, to: {{one: "{one}"}}, otherwise: rest}}
outputs:
  parts: {{topic: parts-out, partitions: 1}}
  one: {{topic: one-out, partitions: 1}}
  rest: {{topic: rest-out, partitions: 1}}
"""
COUNTED = """
network: purged
streams:
  readings:
    topic: purged-in
    schema: reading.avsc
    event_time: at
    lateness: 1s
    idle_after: 10s
    partitions: 1
boxes:
  halved: {{map: readings, select: {{sensor: sensor, half: "{half}", at: at}}}}
  counts: {{aggregate: halved, window: {window}, by: [sensor], compute: {{n: count(*)}}}}
outputs: {{counts: {{topic: purged-out, partitions: 1}}}}
"""
SIDE = "schema: reading.avsc, event_time: at, lateness: 1s, idle_after: 1s, partitions: 1"
PARTED = f"""
network: parted
streams:
  readings: {{{{topic: parted-in, {SIDE}}}}}
  rates: {{{{topic: parted-rates, {SIDE}}}}}
boxes:
  parts:
    as_of: {{{{left: readings, right: rates, on: [sensor], within: 1d}}}}
    select: {{{{sensor: sensor, part: "{{part}}"}}}}
outputs: {{{{parts: {{{{topic: parted-out, partitions: 1}}}}}}}}
"""
DAY_MS = 86_400_000
WITHIN_S = 150.0
Dlq = Callable[..., Any]


@pytest.fixture
def dlq(medusa: Installation, capsys: pytest.CaptureFixture[str]) -> Dlq:
    """Runs `medusa dlq` on the stack; returns its JSON output."""
    addresses = {
        "kafka.bootstrap_servers": medusa.stack.kafka_bootstrap_servers,
        "zookeeper.connect": medusa.stack.zookeeper_connect,
        "registry.url": medusa.stack.registry_url,
    }

    def call(*arguments: str, code: int = 0) -> Any:
        capsys.readouterr()
        found = run(
            ["dlq", *arguments, "-o", "json", *(f"--set={n}={v}" for n, v in addresses.items())]
        )
        captured = capsys.readouterr()
        assert found == code, captured.err
        return json.loads(captured.out)

    return call


def _deploy(medusa: Installation, name: str) -> FragmentNames:
    medusa.deploy(DOCUMENT.format(name=name), {"reading.avsc": READING})
    medusa.await_state(name, "halved", LaneState.RUNNING)
    return FragmentNames(FragmentId(network_id(name), FragmentName("halved")))


def _await(medusa: Installation, topic: str, count: int) -> None:
    medusa.wait_for(
        lambda: len(medusa.records(topic)) >= count, f"{count} in {topic}", within_s=WITHIN_S
    )
    assert len(medusa.records(topic)) == count


def test_a_record_is_redriven_once_after_its_schema_is_registered(
    medusa: Installation, dlq: Dlq
) -> None:
    """Before, it is refused; then the running lane fetches the id again and accepts it, once."""
    names = _deploy(medusa, "resent")
    (reading,) = readings(1)
    value = medusa.encoded("resent-in-value", READING, {**reading, "value": 4})
    good = wire.split(value)
    assert isinstance(good, wire.Framed)
    later = {
        **READING,
        "fields": [*READING["fields"], {"name": "again", "type": "string", "default": "x"}],
    }
    # Ids are assigned in order: the next registration gets this one.
    text = json.dumps({**later, "doc": "the one before"})
    unknown = SchemaId(medusa.registry.register("resent-other-value", text) + 1)
    headers = (("trace", b"1"), ("trace", b"2"), ("none", None))
    sent = wire.join(unknown, good.body + b"\x02y")
    old = reading["at"] - 1_800_000
    medusa.send("resent-in", sent, key=b"k", partition=1, timestamp_ms=old, headers=headers)
    medusa.producer.flush(10)
    _await(medusa, names.dead_letters, 1)
    (dead_letter,) = medusa.records(names.dead_letters)
    assert dict(dead_letter.headers)[f"{PREFIX}timestamp"] == str(old).encode()
    assert dead_letter.timestamp_ms > reading["at"] - 1_000, "the broker stamps it when it comes"
    listed = dlq("list", "resent")["fragments"][0]
    assert (listed["letters"], listed["redriven"]) == (1, 0)
    assert listed["reasons"] == {"schema_not_found": 1}
    refused = dlq("redrive", "resent.halved", "--yes", code=65)
    assert "still has no such schema" in refused["error"]["message"]
    assert medusa.registry.register("resent-in-value", json.dumps(later)) == unknown
    assert dlq("redrive", "resent.halved", "--dry-run")["sent"] == 1
    assert not medusa.admin.describe((names.redrive,)), "nothing was sent again so far"
    before = medusa.marker("resent", "halved")
    assert dlq("redrive", "resent.halved", "--yes")["sent"] == 1
    once_more = dlq("redrive", "resent.halved", "--yes")
    assert (once_more["sent"], once_more["already_sent"]) == (0, 1)
    _await(medusa, "resent-out", 1)
    assert medusa.decoded("resent-out")[0]["half"] == 25.0
    (copy,) = medusa.records(names.redrive)
    assert (copy.key, copy.value, copy.timestamp_ms, copy.partition) == (
        b"k", sent, old, 1,
    )  # fmt: skip
    assert copy.headers[:3] == headers
    assert dlq("list", "resent")["fragments"][0]["redriven"] == 1
    after = medusa.marker("resent", "halved")
    assert (before.redrive, after.incarnation) == (None, before.incarnation), "it went on as it was"
    ends = {at.partition: end for at, end in after.end.items() if at.topic == names.redrive}
    assert (ends[0], ends[1] > 0) == (0, True)


def test_a_missing_redrive_topic_stops_its_fragment(medusa: Installation, dlq: Dlq) -> None:
    """Its positions are lost, so lane, deploy and redrive refuse; destroy deletes such a topic."""
    names = _deploy(medusa, "gone")
    medusa.send("gone-in", b"plain text", key=b"k", partition=0)
    medusa.producer.flush(10)
    _await(medusa, names.dead_letters, 1)
    assert dlq("redrive", "gone.halved", "--yes")["sent"] == 1
    _await(medusa, names.dead_letters, 2)
    medusa.admin.delete_topics((names.redrive,))
    medusa.await_state(names.network.name, names.fragment, LaneState.WAITING)

    def is_named() -> bool:
        status = medusa.status("gone", "halved")
        return status is not None and f"topic {names.redrive}" in status.last_error

    medusa.wait_for(is_named, "the name of the topic that is gone", within_s=30)
    refused = dlq("redrive", "gone.halved", "--yes", code=65)
    assert "the topic is gone" in refused["error"]["message"]
    with pytest.raises(DeployError, match=f"topic {names.redrive} is gone"):
        medusa.deploy(DOCUMENT.format(name="gone"), {"reading.avsc": READING})
    medusa.destroy("gone")
    _deploy(medusa, "gone")
    _await(medusa, names.dead_letters, 1)
    assert dlq("redrive", "gone.halved", "--yes")["sent"] == 1
    medusa.destroy("gone")
    assert not medusa.admin.describe((names.redrive,))


def test_a_failed_redrive_counts_its_attempts_and_can_be_purged(
    medusa: Installation, dlq: Dlq
) -> None:
    """The new dead letter contains the record's original position; a purge removes both."""
    names = _deploy(medusa, "failing")
    (reading,) = readings(1)
    value = medusa.encoded("failing-in-value", READING, {**reading, "value": 0})
    medusa.send("failing-in", value, key=b"k", partition=0)
    medusa.producer.flush(10)
    _await(medusa, names.dead_letters, 1)
    dlq("redrive", "failing.halved", "--reason", "evaluation_failed", "--yes")
    _await(medusa, names.dead_letters, 2)
    assert dlq("redrive", "failing.halved", "--yes")["sent"] == 1
    _await(medusa, names.dead_letters, 3)
    dead_letters = [dict(dead_letter.headers) for dead_letter in medusa.records(names.dead_letters)]
    assert sorted(one[f"{PREFIX}attempt"] or b"" for one in dead_letters) == [b"1", b"2", b"3"]
    assert {one.get(REDRIVEN_ORIGIN) for one in dead_letters} == {None, b"failing-in/0/0"}
    assert medusa.records("failing-out") == []
    assert dlq("purge", "failing.halved", "--before", "1h", "--yes")["kept_as_younger"] == 3
    assert dlq("purge", "failing.halved", "--all", "--yes")["removed"] == 3
    assert dlq("list", "failing")["fragments"][0]["letters"] == 0


def test_an_interrupted_redrive_is_aborted_and_fenced_by_the_next(
    medusa: Installation, dlq: Dlq
) -> None:
    """The next run sends its uncommitted records, and it can no longer commit."""
    names = _deploy(medusa, "killed")
    for number in range(4):
        medusa.send("killed-in", b"plain text", key=str(number).encode())
    medusa.producer.flush(10)
    _await(medusa, names.dead_letters, 4)
    # Else it would refuse the redriven records again, and so add dead letters.
    pause(names.network, names.fragment, medusa.catalog)
    medusa.await_state(names.network.name, names.fragment, LaneState.STOPPED)
    assert dlq("redrive", "killed.halved", "--limit", "1", "--yes")["sent"] == 1
    bootstrap, clock = medusa.stack.kafka_bootstrap_servers, SystemClock()
    cut_off = TransactionalWriter(bootstrap, names.redriver)
    try:
        cut_off.start(Deadline.after(clock, WITHIN_S, "starting"))
        cut_off.begin()
        cut_off.send(
            names.redrive, b"0", b"half", timestamp_ms=clock.now_ms(),
            headers=((REDRIVEN_FROM, b"0/1"),), partition=0,
        )  # fmt: skip
        assert dlq("redrive", "killed.halved", "--limit", "2", "--yes")["sent"] == 2
        with pytest.raises(FencedError):
            cut_off.commit(Deadline.after(clock, WITHIN_S, "committing"))
    finally:
        cut_off.close()
    assert dlq("redrive", "killed.halved", "--reason", "not_wire_format", "--yes")["sent"] == 1
    copies = medusa.records(names.redrive)
    assert sorted(copy.key or b"" for copy in copies) == [b"0", b"1", b"2", b"3"]
    assert {copy.value for copy in copies} == {b"plain text"}
    resume(names.network, names.fragment, medusa.catalog)
    _await(medusa, names.dead_letters, 8)  # it reads the topic that was created during the pause


def _deploy_orders(medusa: Installation, share: str, one: str) -> None:
    medusa.deploy(ORDERS.format(share=share, one=one), {"order.avsc": ORDER})


def _order(medusa: Installation, number: int, parts: list[int]) -> None:
    value = {"id": number, "parts": parts, "at": readings(1)[0]["at"]}
    medusa.send("orders-in", medusa.encoded("orders-in-value", ORDER, value))
    medusa.producer.flush(10)


def test_a_partly_failed_record_is_redriven_as_a_whole(medusa: Installation, dlq: Dlq) -> None:
    """Through a flat_map with all its rows; through a route to the branch that now matches."""
    _deploy_orders(medusa, "100 / part", "100 / id > 50")
    for number, parts in ((1, [5, 10]), (2, []), (0, [4]), (3, [5, 0, 2])):
        _order(medusa, number, parts)
    for topic, count in (("parts-out", 3), ("one-out", 1), ("rest-out", 2)):
        _await(medusa, topic, count)
    for fragment, field in (("parts", "select.share"), ("one", "to.one"), ("rest", "to.one")):
        _await(medusa, f"local.orders.{fragment}.dlq", 1)
        headers = dict(medusa.records(f"local.orders.{fragment}.dlq")[0].headers)
        assert headers[f"{PREFIX}field"] == field.encode()
    _deploy_orders(medusa, "coalesce(try_divide(100, part), 0)", "try_divide(100, id) > 50")
    for fragment in ("parts", "one", "rest"):
        assert dlq("redrive", f"orders.{fragment}", "--yes")["sent"] == 1
    _await(medusa, "parts-out", 6)
    _await(medusa, "rest-out", 3)
    rows = [(row["id"], row["n"], row["share"]) for row in medusa.decoded("parts-out")]
    assert rows[:3] == [(1, 0, 20.0), (1, 1, 10.0), (0, 0, 25.0)]
    assert rows[3:] == [(3, 0, 20.0), (3, 1, 0.0), (3, 2, 50.0)]
    assert [row["id"] for row in medusa.decoded("rest-out")] == [2, 3, 0]
    assert [row["id"] for row in medusa.decoded("one-out")] == [1]


def test_a_rebuild_counts_redriven_records_once(medusa: Installation, dlq: Dlq) -> None:
    """Also if retention has deleted their dead letters, which no window of the old plan needed."""
    begin_ms = (SystemClock().now_ms() // DAY_MS - 3) * DAY_MS
    rebuilt = Choices(named={FragmentName("counts"): OnChange.REBUILD})

    def deploy(half: str, window: str, choices: Choices = NO_CHOICES) -> None:
        document = COUNTED.format(half=half, window=window)
        version = medusa.deploy(document, {"reading.avsc": READING}, choices).version
        medusa.await_state("purged", "counts", LaneState.RUNNING, epoch=version)

    def send(value: int, after_ms: int) -> None:
        reading = {"sensor": "a", "value": value, "at": begin_ms + after_ms}
        medusa.send("purged-in", medusa.encoded("purged-in-value", READING, reading), partition=0)
        medusa.producer.flush(10)

    def await_totals(**expected: int) -> None:
        def reached() -> bool:
            totals = medusa.marker("purged", "counts").totals
            return all(getattr(totals, name) == count for name, count in expected.items())

        medusa.wait_for(reached, str(expected), within_s=WITHIN_S)

    deploy("100 / value", "10s")
    for value in (0, 1, 2):
        send(value, 100 + value)
    await_totals(records_in=3, dead_letters=1)
    deploy("value", "10s", rebuilt)
    assert dlq("redrive", "purged.counts", "--yes")["sent"] == 1
    await_totals(records_in=4)
    for value in (4, 5):
        send(value, 60_000 * value)
    _await(medusa, "purged-out", 2)
    assert medusa.decoded("purged-out")[0]["n"] == 3
    medusa.wait_for(
        lambda: not medusa.marker("purged", "counts").letters_from,
        "no window needs the dead letter",
        within_s=WITHIN_S,
    )
    assert dlq("purge", "purged.counts", "--all", "--yes")["removed"] == 1
    deploy("value", "1d", rebuilt)
    send(9, 2 * DAY_MS)
    _await(medusa, "purged-out", 3)
    assert medusa.decoded("purged-out")[2]["n"] == 5


def test_a_failed_as_of_result_is_redriven_after_its_expression_is_fixed(
    medusa: Installation, dlq: Dlq
) -> None:
    """It joins the table version of its row's time, though long past, and is marked as redriven."""
    begin_ms = SystemClock().now_ms() - DAY_MS // 24

    def send(topic: str, value: int, after_ms: int) -> None:
        reading = {"sensor": "a", "value": value, "at": begin_ms + after_ms}
        medusa.send(topic, medusa.encoded(f"{topic}-value", READING, reading), partition=0)
        medusa.producer.flush(10)

    medusa.deploy(PARTED.format(part="left.value % right.value"), {"reading.avsc": READING})
    medusa.await_state("parted", "parts", LaneState.RUNNING)
    send("parted-rates", 0, 0)
    send("parted-in", 5, 1_000)
    _await(medusa, "local.parted.parts.dlq", 1)
    headers = dict(medusa.records("local.parted.parts.dlq")[0].headers)
    assert headers[f"{PREFIX}row"] == b"parted-in/0/0"
    send(
        "parted-rates", 3, DAY_MS // 48
    )  # far after the event time that the clock gives to the first ones
    send("parted-in", 7, DAY_MS // 48 + 1_000)
    _await(medusa, "parted-out", 1)
    rebuilt = Choices(named={FragmentName("parts"): OnChange.REBUILD})
    repaired = PARTED.format(part="coalesce(try_mod(left.value, right.value), -1)")
    version = medusa.deploy(repaired, {"reading.avsc": READING}, rebuilt).version
    medusa.await_state("parted", "parts", LaneState.RUNNING, epoch=version)
    assert dlq("redrive", "parted.parts", "--dry-run")["late"]["count"] == 0
    assert dlq("redrive", "parted.parts", "--yes")["sent"] == 1
    _await(medusa, "parted-out", 2)
    assert [row["part"] for row in medusa.decoded("parted-out")] == [1, -1]
    marks = [LATE_RESULT in dict(one.headers) for one in medusa.records("parted-out")]
    assert marks == [False, True]
    assert dlq("redrive", "parted.parts", "--yes")["already_sent"] == 1
    assert dlq("list", "parted")["fragments"][0]["letters"] == 1
