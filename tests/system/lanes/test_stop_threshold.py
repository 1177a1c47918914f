"""Limits of dead letters on the real stack."""

import pytest

from pipeline.catalog.fragment_status import LaneState
from pipeline.deploy.pause import pause, resume
from pipeline.ids import FragmentId, FragmentName
from pipeline.lanes.dead_letters import PREFIX
from pipeline.names import FragmentNames
from tests.system.support import READING, Installation, network_id, readings

pytestmark = [pytest.mark.system, pytest.mark.timeout(600), pytest.mark.usefixtures("node")]

DOCUMENT = """
network: borne
streams:
  readings:
    topic: borne-in
    schema: reading.avsc
    event_time: at
    lateness: 1h
    partitions: 1
    dead_letters: {{stop_above: {most}}}
boxes:
  passed: {{filter: readings, where: value >= 0}}
outputs: {{passed: {{topic: borne-out, partitions: 1}}}}
"""
NAME = network_id("borne")
PASSED = FragmentName("passed")
NAMES = FragmentNames(FragmentId(NAME, PASSED))
WITHIN_S = 120.0


def send(medusa: Installation, *values: int | None) -> None:
    """Send readings with these values; None: an undecodable record."""
    (reading,) = readings(1)
    for value in values:
        data = (
            b"plain text"
            if value is None
            else medusa.encoded("borne-in-value", READING, {**reading, "value": value})
        )
        medusa.send("borne-in", data, partition=0)
    medusa.producer.flush(10)


def await_output(medusa: Installation, *values: int) -> None:
    """Wait until the output contains so many readings, then compare them."""
    medusa.wait_for(
        lambda: len(medusa.records("borne-out")) >= len(values),
        f"{len(values)} results",
        within_s=WITHIN_S,
    )
    assert [one["value"] for one in medusa.decoded("borne-out")] == list(values)


def test_a_fragment_stops_above_its_limit_of_dead_letters(medusa: Installation) -> None:
    """Up to the limit records are dead letters; one more writes nothing, also on a retry."""
    schemas = {"reading.avsc": READING}
    medusa.deploy(DOCUMENT.format(most=1), schemas)
    send(medusa, 1, None, 2)
    await_output(medusa, 1, 2)
    send(medusa, None, 3)
    failed = medusa.await_state(NAME.name, PASSED, LaneState.FAILED)
    assert "stream readings has 2 dead letters, and bears at most 1" in failed.last_error
    assert "topic borne-in, partition 0, offset 3" in failed.last_error
    await_output(medusa, 1, 2)
    assert len(medusa.records(NAMES.dead_letters)) == 1

    assert pause(NAME, PASSED, medusa.catalog) == (PASSED,)
    medusa.await_state(NAME.name, PASSED, LaneState.STOPPED)
    resume(NAME, PASSED, medusa.catalog)
    again = medusa.await_state(NAME.name, PASSED, LaneState.FAILED, epoch=failed.epoch + 1)
    assert "offset 3" in again.last_error
    assert len(medusa.records("borne-out")) == 2

    medusa.deploy(DOCUMENT.format(most=2), schemas)
    await_output(medusa, 1, 2, 3)
    dead_letters = [dict(one.headers) for one in medusa.records(NAMES.dead_letters)]
    assert [one[f"{PREFIX}offset"] for one in dead_letters] == [b"1", b"3"]
