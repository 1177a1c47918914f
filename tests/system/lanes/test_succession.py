"""An output topic changes its writer, and changes back, while records arrive."""

from collections import Counter

import pytest

from pipeline.catalog.fragment_status import LaneState
from pipeline.errors import DeployError
from pipeline.ids import StreamName, TopicName
from pipeline.names import key_subject, value_subject
from pipeline.planner.inputs import InputFrom
from pipeline.planner.state import Choices
from schemas.compatibility import Level
from tests.system.lanes.test_renamed import BASE, SCHEMAS, STREAM, WITHIN_S, await_values, send
from tests.system.support import READING, Installation

pytestmark = [pytest.mark.system, pytest.mark.timeout(600), pytest.mark.usefixtures("node")]

HEAD = "network: {name}\nstreams:\n" + STREAM + "boxes:\n"
END = Choices(inputs={StreamName("readings"): InputFrom.END})
BEGINNING = Choices(inputs={StreamName("readings"): InputFrom.BEGINNING})


def document(name: str, box: str, definition: str) -> str:
    """A network whose only box writes a topic of another name."""
    head = HEAD.format(name=name, stream="readings", topic=f"{name}-in").replace("1h", "1s")
    return f"{head}  {box}: {{{definition}}}\noutputs: {{{box}: {{topic: {name}-out}}}}\n"


def take_any_schema(medusa: Installation, name: str) -> None:
    """Set the compatibility level to NONE: record schemas have the name of their box."""
    for subject in (value_subject, key_subject):
        medusa.registry.admin.set_level(subject(TopicName(f"{name}-out")), Level.NONE)


def test_a_restored_filter_publishes_no_record_twice(medusa: Installation) -> None:
    """Renamed, then renamed back: exactly 150 records are published each time."""
    name = "succession"
    first, second = (document(name, box, "filter: readings, where: value >= 0") for box in "ab")
    topic, out = f"{name}-in", f"{name}-out"
    medusa.deploy(first, SCHEMAS)
    take_any_schema(medusa, name)
    send(medusa, topic, range(100))
    await_values(medusa, out, Counter(range(100)))
    with pytest.raises(DeployError, match=f"topic {out} was last written by another fragment"):
        medusa.deploy(second, SCHEMAS)
    medusa.deploy(second, SCHEMAS, END)
    medusa.await_state(name, "b", LaneState.RUNNING)
    send(medusa, topic, range(100_000, 100_050))
    await_values(medusa, out, Counter([*range(100), *range(100_000, 100_050)]))
    with pytest.raises(DeployError, match=f"topic {out} was last written by another fragment"):
        medusa.deploy(first, SCHEMAS)

    def is_promised() -> bool:
        return medusa.marker(name, "b").boundary_ms is not None

    medusa.wait_for(is_promised, "a boundary", within_s=WITHIN_S)
    before = medusa.marker(name, "b")
    medusa.deploy(first, SCHEMAS, END)
    medusa.await_state(name, "a", LaneState.RUNNING, epoch=2)
    send(medusa, topic, range(200_000, 200_030))
    expected = Counter([*range(100), *range(100_000, 100_050), *range(200_000, 200_030)])
    await_values(medusa, out, expected)
    after = medusa.marker(name, "a")
    assert after.totals.records_in == 130
    assert before.boundary_ms is not None
    assert after.boundary_ms is not None
    assert after.boundary_ms >= before.boundary_ms


def test_windows_published_by_another_fragment_are_not_repeated(medusa: Installation) -> None:
    """From the beginning: windows below the promise are skipped; open ones are complete."""
    name = "succession_windows"
    count = "aggregate: readings, window: 10s, by: [sensor], compute: {value: count(*)}"
    topic, out = f"{name}-in", f"{name}-out"
    start_ms = BASE - BASE % 10_000

    def send_at(*after_ms: int) -> None:
        for at in after_ms:
            reading = {"sensor": "a", "value": 1, "at": start_ms + at}
            medusa.send(topic, medusa.encoded(f"{topic}-value", READING, reading), partition=0)
        medusa.producer.flush(10)

    def document_of(box: str) -> str:
        return document(name, box, count).replace("idle_after: 1s", "lateness: 0s, idle_after: 1h")

    medusa.create_topic(topic, partitions=1)
    medusa.deploy(document_of("a"), SCHEMAS)
    take_any_schema(medusa, name)
    send_at(1_000, 2_000, 11_000, 12_000, 13_000)
    medusa.wait_for(lambda: len(medusa.records(out)) == 1, "a window", within_s=WITHIN_S)
    medusa.deploy(document_of("b"), SCHEMAS, BEGINNING)
    medusa.await_state(name, "b", LaneState.RUNNING)
    send_at(14_000, 25_000)
    medusa.wait_for(lambda: len(medusa.records(out)) >= 2, "a window", within_s=WITHIN_S)
    medusa.deploy(document_of("a"), SCHEMAS, BEGINNING)
    medusa.await_state(name, "a", LaneState.RUNNING, epoch=2)
    send_at(26_000, 35_000)
    medusa.wait_for(lambda: len(medusa.records(out)) >= 3, "a window", within_s=WITHIN_S)
    assert sorted(row["value"] for row in medusa.decoded(out)) == [2, 2, 4]
    assert medusa.marker(name, "b").totals.skipped == 2
    assert medusa.marker(name, "a").totals.skipped == 6
