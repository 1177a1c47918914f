"""Foreign records in the topic between two lanes."""

import time
from collections import Counter
from functools import partial

import pytest

from pipeline.catalog.fragment_status import LaneState
from pipeline.lanes.dead_letters import PREFIX
from pipeline.lanes.result_headers import WRITTEN_TO
from tests.system.support import READING, Installation

pytestmark = [pytest.mark.system, pytest.mark.timeout(300), pytest.mark.usefixtures("node")]

DOCUMENT = """
network: foreign
streams:
  readings:
    topic: foreign-in
    schema: reading.avsc
    event_time: at
    lateness: 1s
    idle_after: 10s
    partitions: 1
boxes:
  good: {filter: readings, where: value > 0}
  passed: {map: good, select: {sensor: sensor, value: value, at: at}}
  sums: {aggregate: good, window: 10s, by: [sensor], compute: {total: sum(value)}}
outputs:
  good: {topic: foreign-good}
  passed: {topic: foreign-passed}
  sums: {topic: foreign-sums}
"""
SIZE_MS = 10_000
WITHIN_S = 90.0
FOREIGN = 5


def test_foreign_records_are_dead_letters_of_the_reader(medusa: Installation) -> None:
    """Whatever their value and age, no lane stops, and results are unaffected."""
    medusa.deploy(DOCUMENT, {"reading.avsc": READING})
    for box in ("good", "passed", "sums"):
        medusa.await_state("foreign", box, LaneState.RUNNING)
    start = int(time.time() * 1000) // SIZE_MS * SIZE_MS - 6 * SIZE_MS

    def send(value: int, at_ms: int) -> None:
        reading = {"sensor": "a", "value": value, "at": at_ms}
        medusa.send("foreign-in", medusa.encoded("foreign-in-value", READING, reading))
        medusa.producer.flush(10)

    send(1, start)
    send(2, start + 2 * SIZE_MS)
    medusa.wait_for(lambda: medusa.records("foreign-sums"), "a first window", within_s=WITHIN_S)
    (good, *_) = medusa.records("foreign-good")
    assert dict(good.headers).keys() == {WRITTEN_TO}
    others = (
        (good.value, ()),  # long after its window was published
        (good.value, ((WRITTEN_TO, b"another topic"),)),
        (b"\x00\x00\x0f\x42\x41unknown schema", ()),
        (b"no record at all", ()),
        (None, ()),
    )
    assert len(others) == FOREIGN
    for value, headers in others:
        medusa.producer.send(
            good.topic, good.key, value, timestamp_ms=good.timestamp_ms, headers=headers
        )
    medusa.producer.flush(10)
    send(4, start + 4 * SIZE_MS)
    medusa.wait_for(
        lambda: len(medusa.records("foreign-sums")) > 1, "a second window", within_s=WITHIN_S
    )
    assert [row["total"] for row in medusa.decoded("foreign-sums")] == [1, 2]
    medusa.wait_for(
        lambda: len(medusa.records("foreign-passed")) > 2, "three rows", within_s=WITHIN_S
    )
    assert [row["value"] for row in medusa.decoded("foreign-passed")] == [1, 2, 4]
    for box in ("passed", "sums"):
        dead = f"local.foreign.{box}.dlq"
        complete = partial(medusa.has_more_than, dead, FOREIGN - 1)
        medusa.wait_for(complete, f"what nobody has written in {dead}", within_s=WITHIN_S)
        dead_letters = medusa.records(dead)
        assert Counter(one.value for one in dead_letters) == Counter(value for value, _ in others)
        assert {dict(one.headers)[f"{PREFIX}reason"] for one in dead_letters} == {b"foreign"}
        medusa.wait_for(
            partial(has_reported, medusa, box), f"{box} reports them", within_s=WITHIN_S
        )


def has_reported(medusa: Installation, box: str) -> bool:
    """Whether a fragment runs without a restart and has reported all foreign records."""
    status = medusa.status("foreign", box)
    assert status is not None
    assert (status.state, status.restarts, status.last_error) == (LaneState.RUNNING, 0, "")
    return status.dead_letters == FOREIGN
