"""Upgrade and rollback while records arrive: lanes that continue, state that is rebuilt."""

import time
from collections import Counter
from functools import partial

import pytest

from pipeline.catalog.fragment_status import LaneState
from pipeline.deploy.apply import Deployed, compare, deploy
from pipeline.deploy.versions import document_of
from pipeline.errors import DeployError
from pipeline.ids import NetworkVersion
from pipeline.planner.state import Choices, OnChange
from tests.system.support import OWNER, READING, Installation, network_id

pytestmark = [pytest.mark.system, pytest.mark.timeout(600), pytest.mark.usefixtures("node")]

HEAD = """
network: {name}
streams:
  readings:
    topic: {name}-in
    schema: reading.avsc
    event_time: at
    lateness: 1s
    idle_after: 1h
    partitions: 2
"""
FILTER = HEAD + "boxes: {{passed: {{filter: readings, where: {where}}}}}\n"
WINDOWS = (
    HEAD
    + """
boxes:
  counts:
    aggregate: readings
    window: {window}
    by: [sensor]
    compute: {{n: count(*), total: sum(value)}}
outputs: {{counts: {{topic: {name}-out}}}}
"""
)
WITHIN_S = 90.0
BASE = int(time.time()) // 10 * 10_000 - 1_000_000
"""Event time of the first reading: the start of a window of ten seconds."""


def send(medusa: Installation, name: str, values: range) -> None:
    """Send readings a quarter of a second apart, of sensors a and b in turn."""
    for value in values:
        reading = {"sensor": "ab"[value % 2], "value": value, "at": BASE + value * 250}
        data = medusa.encoded(f"{name}-in-value", READING, reading)
        medusa.send(f"{name}-in", data, partition=value % 2)
    medusa.producer.flush(10)


def await_read(medusa: Installation, name: str, box: str, records: int) -> None:
    """Wait until the fragment has processed so many records since its first start."""

    def read() -> bool:
        status = medusa.status(name, box)
        return status is not None and status.records_in >= records

    medusa.wait_for(read, f"{records} records read", within_s=WITHIN_S)


def rolled_back(medusa: Installation, name: str, version: int) -> Deployed:
    """Deploy an earlier version again, as `medusa rollback` does."""
    record = medusa.catalog.networks.get(network_id(name))
    assert record is not None
    document = document_of(record, NetworkVersion(version), medusa.catalog)
    found = compare(document, OWNER, medusa.servers)
    return deploy(found, medusa.servers, lambda _: None)


def test_a_changed_filter_loses_and_repeats_no_record(medusa: Installation) -> None:
    """Each record passes exactly one version of the filter, through the change and its rollback."""
    name = "upgraded_filter"
    schemas = {"reading.avsc": READING}
    medusa.deploy(FILTER.format(name=name, where="value >= 0"), schemas)
    medusa.await_state(name, "passed", LaneState.RUNNING)
    send(medusa, name, range(100))
    await_read(medusa, name, "passed", 100)
    assert medusa.deploy(FILTER.format(name=name, where="value % 4 = 0"), schemas).version == 2
    send(medusa, name, range(200, 300, 4))  # passes both, while one follows on the other
    medusa.await_state(name, "passed", LaneState.RUNNING, epoch=2)
    send(medusa, name, range(300, 400))
    await_read(medusa, name, "passed", 225)
    assert rolled_back(medusa, name, 1).version == 3
    send(medusa, name, range(400, 500, 4))
    medusa.await_state(name, "passed", LaneState.RUNNING, epoch=3)
    send(medusa, name, range(500, 600))
    await_read(medusa, name, "passed", 350)
    expected = Counter(range(100))
    expected.update(range(200, 300, 4))
    expected.update(range(300, 400, 4))
    expected.update(range(400, 500, 4))
    expected.update(range(500, 600))
    assert Counter(row["value"] for row in medusa.decoded(f"local.{name}.passed")) == expected


def test_windows_of_another_size_are_complete_after_the_promise(
    medusa: Installation,
) -> None:
    """The change is refused without a choice; after a rebuild no later window lacks a record."""
    name = "upgraded_windows"
    schemas = {"reading.avsc": READING}
    medusa.deploy(WINDOWS.format(name=name, window="10s"), schemas)
    send(medusa, name, range(170))
    await_read(medusa, name, "counts", 170)
    # The last reading is 42 s after the first: four windows have ended, the fifth has not.
    out = f"{name}-out"
    medusa.wait_for(lambda: len(medusa.records(out)) == 8, "four windows", within_s=WITHIN_S)
    before = medusa.records(out)
    # No result at or below this time may follow: 1 ms before the fifth window's end.
    promised = BASE + 49_999
    shorter = WINDOWS.format(name=name, window="5s")
    with pytest.raises(DeployError, match="does not fit the new plan") as caught:
        medusa.deploy(shorter, schemas)
    changes, _, since, *_ = caught.value.problems[0].details
    assert "window" in changes
    assert f"{name}-in holds records since" in since
    assert medusa.deploy(shorter, schemas, Choices(OnChange.REBUILD)).version == 2
    medusa.await_state(name, "counts", LaneState.RUNNING, epoch=2)
    send(medusa, name, range(170, 400))
    await_read(medusa, name, "counts", 400)
    expected = {
        (sensor, end): reference(sensor, end)
        for sensor in "ab"
        for end in range(promised + 1, BASE + 95_001, 5_000)
    }
    count = len(before) + len(expected)
    medusa.wait_for(partial(medusa.has_more_than, out, count - 1), "all", within_s=WITHIN_S)
    earlier = {(record.partition, record.offset) for record in before}
    found = [
        ((row["sensor"], record.timestamp_ms), (row["n"], row["total"]))
        for record, row in zip(medusa.records(out), medusa.decoded(out), strict=True)
        if (record.partition, record.offset) not in earlier
    ]
    assert len(found) == len(dict(found))
    assert dict(found) == expected


def reference(sensor: str, end: int) -> tuple[int, int]:
    """Count and sum of a sensor's readings in the five seconds before `end`."""
    values = [
        value
        for value in range(400)
        if "ab"[value % 2] == sensor and end - 5_000 <= BASE + value * 250 < end
    ]
    return len(values), sum(values)
