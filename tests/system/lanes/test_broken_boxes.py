"""The check for schemas that deployed boxes cannot read, before registration, on real servers."""

import json
from pathlib import Path

import pytest

from pipeline.catalog.fragment_status import LaneState
from pipeline.cli.main import run
from pipeline.lanes.dead_letters import PREFIX
from tests.system.support import READING, Installation, readings

pytestmark = [pytest.mark.system, pytest.mark.timeout(600), pytest.mark.usefixtures("node")]

DOCUMENT = """
network: told
streams:
  readings: {topic: told-in, schema: reading.avsc, event_time: at, lateness: 1h, partitions: 1}
boxes:
  sensors: {map: readings, select: [sensor, at]}
  values: {map: readings, select: [value, at]}
outputs:
  sensors: {topic: told-sensors, partitions: 1}
  values: {topic: told-values, partitions: 1}
"""
SUBJECT = "told-in-value"
WIDER = {
    **READING,
    "fields": [
        {**field, "type": ["int", "string"]} if field["name"] == "value" else field
        for field in READING["fields"]
    ],
}


def test_a_schema_breaks_exactly_the_boxes_that_the_check_names(
    medusa: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once registered, its records are dead letters of those boxes and accepted by all others."""
    medusa.deploy(DOCUMENT, {"reading.avsc": READING})
    for box in ("sensors", "values"):
        medusa.await_state("told", box, LaneState.RUNNING)
    file = tmp_path / "wider.avsc"
    file.write_text(json.dumps(WIDER))
    stack = medusa.stack
    settings = {
        "kafka.bootstrap_servers": stack.kafka_bootstrap_servers,
        "zookeeper.connect": stack.zookeeper_connect,
        "registry.url": stack.registry_url,
    }
    register = ["schema", "register", SUBJECT, str(file)]
    register += [f"--set={name}={value}" for name, value in settings.items()]
    assert run(register) == 65
    printed = capsys.readouterr().err
    assert "local.told.values: stream readings, /fields/value/type" in printed
    assert "told.sensors" not in printed
    assert medusa.registry.lookup(SUBJECT, json.dumps(WIDER)) is None
    assert run([*register, "--yes"]) == 0

    (reading,) = readings(1)
    text = {**reading, "sensor": "new", "value": "many"}
    medusa.send("told-in", medusa.encoded(SUBJECT, WIDER, text), partition=0)
    medusa.producer.flush(10)
    medusa.wait_for(
        lambda: (
            medusa.has_more_than("told-sensors", 0)
            and medusa.has_more_than("local.told.values.dlq", 0)
        ),
        "one box has read it and the other has refused it",
        within_s=120,
    )
    assert [row["sensor"] for row in medusa.decoded("told-sensors")] == ["new"]
    (dead_letter,) = medusa.records("local.told.values.dlq")
    assert dict(dead_letter.headers)[f"{PREFIX}reason"] == b"undecodable"
    assert medusa.records("local.told.sensors.dlq") == []
