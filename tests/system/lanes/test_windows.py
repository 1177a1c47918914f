"""Windows on the real stack: what cannot be computed and what comes too late is kept and told."""

import json
import time

import pytest

from pipeline.catalog.records import LaneState
from tests.system.lanes.support import READING, Installation

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("node")]

DOCUMENT = """
network: windows
streams:
  readings:
    topic: windows-in
    schema: reading.avsc
    event_time: at
    lateness: 1s
    idle_after: 1s
    partitions: 1
boxes:
  means:
    aggregate: readings
    window: 1s
    by: [sensor]
    compute: {n: count(*), inverse: 100 / sum(value)}
outputs: {means: {topic: windows-out}}
"""
WITHIN_S = 120.0


def test_a_result_that_fails_and_a_late_record_are_dead_letters_that_say_why(
    medusa: Installation,
) -> None:
    """Both name the place in the document or the times that matter; the other results come out."""
    medusa.deploy(DOCUMENT, {"reading.avsc": READING})
    medusa.await_state("windows", "means", LaneState.RUNNING)
    start = int(time.time()) * 1000 - 60_000

    def send(sensor: str, value: int, at: int) -> None:
        reading = {"sensor": sensor, "value": value, "at": at}
        medusa.send("windows-in", medusa.encoded("windows-in-value", READING, reading))
        medusa.producer.flush(10)

    def told(count: int) -> list[dict[str, str]]:
        medusa.wait_for(
            lambda: len(medusa.records("windows.means.dlq")) >= count,
            f"{count} dead letters",
            within_s=WITHIN_S,
        )
        letters = medusa.records("windows.means.dlq")
        return [{key: (value or b"").decode() for key, value in x.headers} for x in letters]

    send("fine", 4, start)
    send("zero", 0, start)
    send("fine", 1, start + 30_000)
    (failed,) = told(1)
    assert failed["medusa.error.reason"] == "evaluation_failed"
    assert failed["medusa.error.box"] == "means"
    assert failed["medusa.error.field"] == "compute.inverse"
    assert failed["medusa.error.message"] == (
        "compute.inverse cannot be computed: 100 / sum(value)"
    )
    assert "medusa.error.offset" not in failed
    (letter,) = medusa.records("windows.means.dlq")
    assert letter.value is not None
    assert json.loads(letter.value)["sensor"] == "zero"
    assert [row["inverse"] for row in medusa.decoded("windows-out")][:1] == [25.0]

    send("late", 1, start)
    (late,) = (headers for headers in told(2) if headers["medusa.error.reason"] == "late")
    assert late["medusa.error.event_time"] == str(start)
    assert int(late["medusa.error.closed"]) > start + 1_000
    assert late["medusa.error.message"].endswith("was closed")
    assert late["medusa.error.offset"] == "3"
