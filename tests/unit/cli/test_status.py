"""`medusa status`."""

from dataclasses import replace

import pytest

from brokers.versioned_store import Set
from pipeline.catalog.fragment_status import LaneState
from pipeline.catalog.records import Standby, TrimRecord
from pipeline.clock import rfc3339
from pipeline.ids import (
    Epoch,
    FragmentId,
    FragmentName,
    Incarnation,
    Millis,
    NodeId,
    Offset,
    StreamName,
    TopicId,
    TopicName,
)
from pipeline.lanes.expiring import Cause, ExpiringRecords, Use
from pipeline.lanes.follower_phases import FollowerPhase
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.codec import encode_marker
from pipeline.markers.positions import InputPartition
from pipeline.names import FragmentNames, Znodes
from tests.unit.cli.reports import CARS, NODE, Caller, deployed, report
from tests.unit.cli.twins import Screen, opener
from tests.unit.deploy.twins import NOW, World
from tests.unit.lanes.marked import marked


def test_status_ends_with_3_when_a_fragment_has_failed(medusa: Caller) -> None:
    """So that a script need not parse the table."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.RUNNING)
    assert medusa("status", opener=connect).code == 0
    report(world, "moving", LaneState.FAILED, "no such column")
    called = medusa("status", "cars", "-o", "json", opener=connect)
    assert called.code == 3
    assert called.data["fragments"][0]["last_error"] == "no such column"


def test_status_of_one_node(medusa: Caller) -> None:
    """A fragment that no node has reported is of none."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.RUNNING)
    for node, expected in ((NODE.node, ["moving"]), ("n9", [])):
        called = medusa("status", "--node", node, "-o", "json", opener=connect)
        assert [one["fragment"] for one in called.data["fragments"]] == expected


def test_status_fits_a_terminal(medusa: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 80 columns; the error is below its row, and the failed state has a colour."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.FAILED, "the record at offset 17 of topic x is no Avro")
    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    medusa("status", opener=connect)
    lines = screen.plain.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].split()[:3] == ["cars.moving", "failed", "n1"]
    assert lines[2] == "  the record at offset 17 of topic x is no Avro"
    assert "\x1b[1;31mfailed" in screen.getvalue()


def test_status_shows_lost_when_the_node_is_gone(medusa: Caller) -> None:
    """A report of a node that is no longer up is ignored."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.RUNNING)
    before = medusa("status", "-o", "json", opener=connect).data["fragments"]
    assert [f["state"] for f in before] == ["running", "pending"]
    world.store.expire()
    after = medusa("status", "cars", opener=connect)
    assert "lost" in after.out
    assert "running" not in after.out


def test_the_lag_of_a_lost_fragment_is_unknown(medusa: Caller) -> None:
    """A dash in the table, null in data, and the time of its last report."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.RUNNING, "boom", lag=7)
    running = medusa("status", "-o", "json", opener=connect).data["fragments"][0]
    assert (running["lag_records"], running["lag_ms"]) == (7, 7)
    world.store.expire()
    lost = medusa("status", "-o", "json", opener=connect).data["fragments"][0]
    assert (lost["lag_records"], lost["lag_ms"], lost["lag_by_topic"]) == (None, None, {})
    row = medusa("status", opener=connect).out.splitlines()[1]
    assert row.split()[5:7] == ["-", "-"]
    assert row.endswith(f"last seen {lost['reported_at']}; no node is up; boom")


def test_status_shows_the_progress_of_a_rebuild(medusa: Caller) -> None:
    """Records read, records to read and duration, instead of the error that led to it."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.REBUILDING, "the checkpoint is damaged", rebuild=400_000)
    row = medusa("status", opener=connect).out.splitlines()[1]
    assert row.endswith("read 400,000 of 1,200,000, 2 of 4 batches, in 1m15s")
    found = medusa("status", "-o", "json", opener=connect).data["fragments"][0]["rebuild"]
    assert (found["offsets"], found["records_read"]) == (1_200_000, 400_000)
    assert (found["batches"], found["batches_done"]) == (4, 2)
    report(world, "moving", LaneState.REBUILDING, rebuild=100_000)
    row = medusa("status", opener=connect).out.splitlines()[1]
    assert row.endswith("read 100,000 of 300,000 in 1m15s")
    report(world, "moving", LaneState.RUNNING)
    found = medusa("status", "-o", "json", opener=connect).data["fragments"][0]
    assert found["rebuild"] is None


def test_status_ignores_reports_of_an_earlier_life_of_a_node(medusa: Caller) -> None:
    """The node is up again, but has not yet started the fragment that it ran before it died."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.RUNNING)
    world.store.expire()
    world.catalog.nodes.register(replace(NODE, started_at_ms=Millis(NOW + 1)))
    found = medusa("status", "-o", "json", opener=connect).data["fragments"]
    assert [f["state"] for f in found] == ["lost", "pending"]


def test_status_identifies_a_nodes_life_although_its_clock_was_set(medusa: Caller) -> None:
    """A report may be older, by the node's clock, than the start of the node in this life."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.RUNNING)
    status = world.catalog.statuses.get(CARS, FragmentName("moving"))
    assert status is not None
    for life, state in ((NOW, "running"), (Millis(NOW - 1), "lost")):
        earlier = Millis(NOW - 5 * 3_600_000)
        world.catalog.statuses.report(replace(status, reported_at_ms=earlier, life=life))
        found = medusa("status", "-o", "json", opener=connect).data["fragments"]
        assert found[0]["state"] == state


def test_status_names_the_input_that_event_time_waits_for(medusa: Caller) -> None:
    """With the delay, in the table too; the fragment is behind by it without any lag."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.RUNNING, lag=0)
    status = world.catalog.statuses.get(CARS, FragmentName("moving"))
    assert status is not None
    waiting = replace(status, held_by="sightings", held_ms=313_000, held_since_ms=NOW)
    world.catalog.statuses.report(waiting)
    row = medusa("status", opener=connect).out.splitlines()[1]
    assert "event time is held back by sightings, 5m13s behind" in row
    assert row.split()[6] == "5m13s"
    found = medusa("status", "-o", "json", opener=connect).data["fragments"][0]
    assert found["lag_ms"] == 0
    expected = {
        "by": "sightings",
        "partition": None,
        "ms": 313_000,
        "since": rfc3339(NOW),
        "silent_since": None,
    }
    assert found["held"] == expected
    world.catalog.statuses.report(replace(waiting, held_ms=None))
    row = medusa("status", opener=connect).out.splitlines()[1]
    assert "event time waits for sightings: it has given none" in row
    silent_since_ms = Millis(status.reported_at_ms - 75_000)
    quiet = replace(waiting, held_ms=None, held_silent_since_ms=silent_since_ms)
    world.catalog.statuses.report(quiet)
    assert "has given none, silent for 1m15s" in medusa("status", opener=connect).out
    world.catalog.statuses.report(replace(waiting, held_silent_since_ms=silent_since_ms))
    row = medusa("status", opener=connect).out.splitlines()[1]
    assert "event time is held back by sightings, 5m13s behind, silent for 1m15s" in row
    world.catalog.statuses.report(replace(waiting, held_ms=0, held_silent_since_ms=silent_since_ms))
    row = medusa("status", opener=connect).out.splitlines()[1]
    assert "event time waits for sightings, silent for 1m15s" in row
    found = medusa("status", "-o", "json", opener=connect).data["fragments"][0]
    assert found["held"]["silent_since"] == rfc3339(silent_since_ms)
    world.catalog.statuses.report(replace(waiting, held_partition=2))
    row = medusa("status", opener=connect).out.splitlines()[1]
    assert "event time is held back by sightings, partition 2, 5m13s behind" in row
    still = replace(waiting, held_ms=0, held_since_ms=Millis(status.reported_at_ms - 45_000))
    world.catalog.statuses.report(still)
    row = medusa("status", opener=connect).out.splitlines()[1]
    assert "event time waits for sightings: its records have brought none for 45.0s" in row
    world.catalog.statuses.report(replace(status, steps_ms=66_000_000))
    row = medusa("status", opener=connect).out.splitlines()[1]
    assert "event time catches up in steps, 18h20m to go" in row
    found = medusa("status", "-o", "json", opener=connect).data["fragments"][0]
    assert (found["held"], found["steps_ms"]) == (None, 66_000_000)
    stalled_since_ms = Millis(status.reported_at_ms - 190_000)
    world.catalog.statuses.report(replace(waiting, stalled_since_ms=stalled_since_ms))
    row = medusa("status", opener=connect).out.splitlines()[1]
    assert row.endswith("no batch has ended for 3m10s")
    found = medusa("status", "-o", "json", opener=connect).data["fragments"][0]
    assert (found["stalled_since"], found["waits_for"]) == (rfc3339(stalled_since_ms), [])
    world.catalog.statuses.report(status)
    assert medusa("status", "-o", "json", opener=connect).data["fragments"][0]["held"] is None


def test_status_names_the_fragment_that_a_running_one_waits_for(medusa: Caller) -> None:
    """The results of a running fragment wait for those of one that does not run."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.WAITING, lag=0)
    report(world, "stopped", LaneState.RUNNING, lag=0)
    status = world.catalog.statuses.get(CARS, FragmentName("stopped"))
    assert status is not None
    world.catalog.statuses.report(replace(status, writers=("local.cars.moving",)))
    shown = medusa("status", opener=connect).out
    assert "waits for cars.moving" in shown
    found = medusa("status", "-o", "json", opener=connect).data["fragments"]
    assert [one["waits_for"] for one in found] in ([[], ["cars.moving"]], [["cars.moving"], []])


def test_status_reports_a_batch_that_does_not_end(medusa: Caller) -> None:
    """With records unread, if there are any."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.RUNNING, lag=0)
    status = world.catalog.statuses.get(CARS, FragmentName("moving"))
    assert status is not None
    for lag, words in ((0, "for 40.0s"), (3, "for 40.0s, with records unread")):
        since_ms = Millis(status.reported_at_ms - 40_000)
        stalled = replace(status, stalled_since_ms=since_ms, lag_records=lag)
        world.catalog.statuses.report(stalled)
        (_, row, *_) = medusa("status", opener=connect).out.splitlines()
        assert row.endswith(f"no batch has ended {words}")


def test_status_reports_a_gap(medusa: Caller) -> None:
    """As long as its results are left out; before what the others wait for."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.RUNNING, lag=4)
    found = world.catalog.statuses.get(CARS, FragmentName("moving"))
    assert found is not None
    assert medusa("status", "-o", "json", opener=connect).data["fragments"][0]["gap"] is None
    until_ms = Millis(found.reported_at_ms + 60_000)
    world.catalog.statuses.report(replace(found, gap_until_ms=until_ms, gap_omitted=1_200))
    said = "gap: its state was lost, 1,200 offsets were not read; results are complete above "
    assert f"{said}{rfc3339(until_ms)}" in medusa("status", opener=connect).out
    data = medusa("status", "-o", "json", opener=connect).data["fragments"][0]
    assert data["gap"] == {"until": rfc3339(until_ms), "offsets": 1_200}


def test_status_reports_unread_and_late_records(medusa: Caller) -> None:
    """Beside what event time waits for."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.RUNNING, lag=4)
    status = world.catalog.statuses.get(CARS, FragmentName("moving"))
    assert status is not None
    late_since_ms = Millis(status.reported_at_ms - 70_000)
    late = replace(
        status,
        lag_ms=12_000,
        late_since_ms=late_since_ms,
        late_span_ms=62_000,
        late_read=60,
        late_records=59,
    )
    world.catalog.statuses.report(replace(late, event_ms=Millis(status.reported_at_ms + 3_480_000)))
    row = medusa("status", opener=connect).out
    assert "4 records unread for up to 12.0s; 59 of 60 records read in 1m2s were late: " in row
    assert "event time is 58m0s beyond the clock" in row
    found = medusa("status", "-o", "json", opener=connect).data["fragments"][0]
    assert found["event_time"] == rfc3339(status.reported_at_ms + 3_480_000)
    expected = {
        "since": rfc3339(late_since_ms), "ms": 62_000, "records": 59, "records_read": 60
    }  # fmt: skip
    assert found["late"] == expected
    away = "topic car-sightings, partition 1, since 12:00"
    world.catalog.statuses.report(replace(status, unreachable=away))
    row = medusa("status", opener=connect).out
    assert f"cannot be reached: {away}; the other partitions are read on" in row
    settles_at_ms = Millis(status.reported_at_ms + 220_000)
    world.catalog.statuses.report(replace(status, settles_at_ms=settles_at_ms))
    row = medusa("status", opener=connect).out
    assert "event time moves by the clock, all results are due in 3m40s" in row
    held = replace(late, lag_ms=0, event_ms=status.reported_at_ms, held_by="sightings")
    world.catalog.statuses.report(held)
    row = medusa("status", opener=connect).out
    assert "59 of 60 records read in 1m2s were late; event time waits for sightings" in row


EXPIRING = ExpiringRecords(
    TopicName("car-sightings"), (0, 3), Use.UNREAD, Cause.AGE, 7 * 86_400_000,
    Millis(NOW - 4 * 86_400_000), Millis(NOW + 3 * 86_400_000),
)  # fmt: skip


def test_status_warns_of_records_that_retention_removes(
    medusa: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below the row of the fragment, after its error; with all facts in data."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.FAILED, "no such column", expiring=(EXPIRING,))
    report(world, "stopped", LaneState.RUNNING)
    plain, quiet = medusa("status", opener=connect).out.splitlines()[1:]
    assert (
        "no such column; warning: unread records of topic car-sightings, partitions 0, 3 are up to"
    ) in plain
    assert plain.endswith("remove the cause of its error, or raise retention.ms of the topic")
    assert "warning" not in quiet
    first, second = medusa("status", "-o", "json", opener=connect).data["fragments"]
    (found,) = first["expiring"]
    assert second["expiring"] == []
    assert (found["topic"], found["partitions"]) == ("car-sightings", [0, 3])
    assert (found["use"], found["cause"]) == ("unread", "age")
    assert found["retention_ms"] == 7 * 86_400_000
    assert found["oldest"] == rfc3339(NOW - 4 * 86_400_000)
    assert found["removed_from"] == rfc3339(NOW + 3 * 86_400_000)
    assert found["message"] in plain
    assert found["hint"] in plain
    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    medusa("status", opener=connect)
    lines = screen.plain.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[2].startswith("  no such column; warning: unread records of topic car-sightings")
    assert lines[-1].split()[:2] == ["cars.stopped", "running"]


def test_status_examines_a_fragment_that_runs_nowhere(medusa: Caller) -> None:
    """By its last marker, in Kafka; if Kafka does not answer, the rest is shown."""
    world = World.new()
    connect = deployed(medusa, world)
    world.kafka.fill("car-sightings", 3)
    topic = TopicName("car-sightings")
    read = {InputPartition(StreamName("sightings"), topic, 0): Offset(1)}
    request = StartRequest(Epoch(1), "digest", stateful=False, on_change=None, place="")
    sources = marked(read, ids={topic: world.kafka.topics[topic].topic_id})
    marker = replace(first_marker(request, Incarnation("a"), read, NOW), sources=sources)
    names = FragmentNames(FragmentId(CARS, FragmentName("moving")))
    world.write(names.markers, encode_marker(marker))
    pending = medusa("status", opener=connect).out.splitlines()[1]
    assert pending.split()[:2] == ["cars.moving", "pending"]
    assert "they may be removed now; start a node" in pending
    found = medusa("status", "-o", "json", opener=connect)
    assert [len(one["expiring"]) for one in found.data["fragments"]] == [1, 0]
    world.write(names.markers, b"damaged")
    called = medusa("status", opener=connect)
    assert "warning" not in called.out
    assert "the retention of topics is not known: " in called.err
    found = medusa("status", "-o", "json", opener=connect)
    assert [one["expiring"] for one in found.data["fragments"]] == [None, None]


def test_status_of_nothing(medusa: Caller) -> None:
    """An installation without networks is no error; an unknown network is one."""
    connect = opener(World.new())
    empty = medusa("status", opener=connect)
    assert (empty.code, empty.out) == (0, "")
    assert "no network is deployed" in empty.err
    assert medusa("status", "cars", opener=connect).code == 65


def test_status_shows_secondaries_if_there_are_to_be_some(medusa: Caller) -> None:
    """How far each is, and how many are missing."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.RUNNING)
    assert "standbys" not in medusa("status", opener=connect).out.splitlines()[0]
    path = Znodes("").fragment(CARS, FragmentName("moving"))
    stored = world.catalog.store.get(path)
    assert stored is not None
    text = stored.value.decode().replace('"active_standbys":0', '"active_standbys":3')
    world.catalog.store.apply((Set(path, text.encode(), stored.version),))
    nodes = {name: replace(NODE, node=NodeId(name)) for name in ("n2", "n3")}
    standby = Standby(CARS, FragmentName("moving"), FollowerPhase.LEVEL, "", NOW)
    building = replace(standby, phase=FollowerPhase.BUILDING, problem="a batch\ndiffers")
    for name, reported in (("n2", standby), ("n3", building)):
        world.catalog.nodes.register(nodes[name])
        world.catalog.standbys.report(nodes[name], (reported,))
    (line,) = [one for one in medusa("status", opener=connect).out.splitlines() if "moving" in one]
    assert "n2 level" in line
    assert "n3 building for" in line
    assert ": a batch differs" in line
    assert "1 missing" in line
    found = medusa("status", "-o", "json", opener=connect).data["fragments"][0]
    assert found["standbys_wanted"] == 3
    by_node = {one["node"]: one for one in found["standbys"]}
    assert (by_node["n2"]["level"], by_node["n3"]["level"]) == (True, False)
    assert by_node["n3"]["problem"] == "a batch\ndiffers"


def test_status_says_what_is_removed_of_a_topic_that_is_kept_by_need(medusa: Caller) -> None:
    """And why no more is."""
    world = World.new()
    connect = deployed(medusa, world)
    no_more = "no more is removed now: fragment cars.stopped has not run"
    before = tuple((partition, Offset(1_000 + partition)) for partition in range(6))
    topic, held = TopicName("local.cars.moving"), "fragment cars.stopped has not run"
    name = CARS, FragmentName("moving")
    trim = TrimRecord(*name, topic, TopicId("one"), (), "", Millis(NOW))
    trims = world.catalog.trims
    for written, text in (
        (trim, "nothing was removed yet"),
        (
            replace(trim, before=before, held=held),
            f"removed below offsets 0: 1,000, 1: 1,001, 2: 1,002, 3: 1,003, …; {no_more}",
        ),
    ):
        assert trims.announce(written, trims.revision(CARS.participant))
        assert f"topic {topic} is kept by need: {text}\n" in medusa("status", opener=connect).err
    first, second = medusa("status", "-o", "json", opener=connect).data["fragments"]
    assert second["trim"] is None
    assert first["trim"] == {
        "topic": topic,
        "removed_before": {str(partition): 1_000 + partition for partition in range(6)},
        "held": held,
        "since": rfc3339(NOW),
    }
