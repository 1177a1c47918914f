"""Regressions of lost or repeated records: renamed streams, inputs removed and added again."""

import time
from collections import Counter

import pytest

from pipeline.catalog.fragment_status import LaneState
from pipeline.errors import DeployError
from pipeline.ids import StreamName
from pipeline.lanes.result_headers import LATE_RESULT
from pipeline.planner.inputs import Fared, InputFrom
from pipeline.planner.state import Choices
from tests.system.lanes.test_upgrade import rolled_back
from tests.system.support import READING, Installation

pytestmark = [pytest.mark.system, pytest.mark.timeout(600), pytest.mark.usefixtures("node")]

STREAM = "  {stream}: {{topic: {topic}, schema: reading.avsc, event_time: at, idle_after: 1h}}\n"
ONE = "network: {name}\nstreams:\n" + STREAM + "boxes:\n"
FILTER = ONE + "  passed: {{filter: {stream}, where: value >= 0}}\n"
WITHIN_S = 90.0
BASE = int(time.time()) * 1_000 - 3_600_000
SCHEMAS = {"reading.avsc": READING}


def send(medusa: Installation, topic: str, values: range) -> None:
    """Send readings of one sensor, ten milliseconds apart."""
    for value in values:
        reading = {"sensor": "a", "value": value, "at": BASE + value * 10}
        medusa.send(topic, medusa.encoded(f"{topic}-value", READING, reading), partition=0)
    medusa.producer.flush(10)


def values(medusa: Installation, topic: str) -> Counter[int]:
    """How often each value was published."""
    return Counter(row["value"] for row in medusa.decoded(topic))


def await_values(medusa: Installation, topic: str, expected: Counter[int]) -> None:
    """Wait for so many results, then compare them."""
    many = sum(expected.values())
    medusa.wait_for(
        lambda: len(medusa.records(topic)) >= many, f"{many} results", within_s=WITHIN_S
    )
    assert values(medusa, topic) == expected


def test_a_renamed_stream_continues(medusa: Installation) -> None:
    """Exactly 150 records are published; earlier dead letters are found by both names."""
    name, topic = "renamed_stream", "renamed_stream-in"
    first = FILTER.format(name=name, stream="readings", topic=topic)
    medusa.deploy(first, SCHEMAS)
    send(medusa, topic, range(100))
    await_values(medusa, f"local.{name}.passed", Counter(range(100)))
    found = medusa.deploy(FILTER.format(name=name, stream="measured", topic=topic), SCHEMAS)
    assert found.version == 2
    send(medusa, topic, range(100, 150))
    await_values(medusa, f"local.{name}.passed", Counter(range(150)))


def test_an_input_that_is_added_again_continues_at_its_position(medusa: Installation) -> None:
    """Removed, then restored by a rollback: records of the meantime are read, none twice."""
    name = "returning_input"
    one, other = f"{name}-one", f"{name}-other"
    both = (
        f"network: {name}\nstreams:\n"
        + STREAM.format(stream="one", topic=one)
        + STREAM.format(stream="other", topic=other)
        + "boxes:\n  all: {union: [one, other]}\n  passed: {filter: all, where: value >= 0}\n"
    )
    medusa.deploy(both, SCHEMAS)
    send(medusa, one, range(50))
    send(medusa, other, range(1_000, 1_050))
    out = f"local.{name}.passed"
    await_values(medusa, out, Counter([*range(50), *range(1_000, 1_050)]))
    alone = (
        f"network: {name}\nstreams:\n"
        + STREAM.format(stream="one", topic=one)
        + "boxes:\n  passed: {filter: one, where: value >= 0}\n"
    )
    medusa.deploy(alone, SCHEMAS)
    medusa.await_state(name, "passed", LaneState.RUNNING, epoch=2)
    send(medusa, one, range(1_050, 1_100))
    await_values(medusa, out, Counter([*range(50), *range(1_000, 1_100)]))
    send(medusa, other, range(2_000, 2_050))
    assert rolled_back(medusa, name, 1).version == 3
    expected = Counter([*range(50), *range(1_000, 1_100), *range(2_000, 2_050)])
    await_values(medusa, out, expected)


def test_a_new_input_starts_at_the_chosen_position(medusa: Installation) -> None:
    """Refused without a choice. At the end: existing records are skipped, new ones are read."""
    name = "new_topic"
    before, after = f"{name}-before", f"{name}-after"
    medusa.deploy(FILTER.format(name=name, stream="readings", topic=before), SCHEMAS)
    send(medusa, before, range(20))
    await_values(medusa, f"local.{name}.passed", Counter(range(20)))
    medusa.create_topic(after, partitions=1)
    send(medusa, after, range(20, 30))
    moved = FILTER.format(name=name, stream="readings", topic=after)
    with pytest.raises(DeployError, match="has never read; it holds 10 offsets"):
        medusa.deploy(moved, SCHEMAS)
    chosen = Choices(inputs={StreamName("readings"): InputFrom.END})
    medusa.deploy(moved, SCHEMAS, chosen)
    send(medusa, after, range(5_000, 5_010))
    await_values(medusa, f"local.{name}.passed", Counter([*range(20), *range(5_000, 5_010)]))
    marker = medusa.marker(name, "passed")
    assert [one.source.name for one in marker.left] == ["readings"]


def test_published_records_are_skipped_when_reading_from_the_beginning(
    medusa: Installation,
) -> None:
    """An inner box becomes an output: its records are computed again, no result is repeated."""
    name, topic = "turned_out", "turned_out-in"
    head = ONE.format(name=name, stream="readings", topic=topic).replace("1h", "1s")
    boxes = "  kept: {filter: readings, where: value >= 0}\n"
    boxes += "  passed: {map: kept, select: {value: value * 2, at: at}}\n"
    inner = f"{head}{boxes}outputs: {{passed: {{topic: {name}-out}}}}\n"
    medusa.deploy(inner, SCHEMAS)
    send(medusa, topic, range(100))
    out = f"{name}-out"
    await_values(medusa, out, Counter(value * 2 for value in range(100)))
    promised = BASE + 99 * 10

    def is_promised() -> bool:
        boundary_ms = medusa.marker(name, "passed").boundary_ms
        return boundary_ms is not None and boundary_ms >= promised

    medusa.wait_for(is_promised, "event time beyond the last record", within_s=WITHIN_S)
    outer = inner.replace("outputs: {", f"outputs: {{kept: {{topic: {name}-kept}}, ")
    with pytest.raises(DeployError, match="never read"):
        medusa.deploy(outer, SCHEMAS)
    chosen = Choices(inputs={StreamName("kept"): InputFrom.BEGINNING})
    medusa.deploy(outer, SCHEMAS, chosen)

    def are_skipped() -> bool:
        return medusa.marker(name, "passed").totals.skipped == 100

    medusa.wait_for(are_skipped, "all that was settled is skipped", within_s=WITHIN_S)
    send(medusa, topic, range(100_000, 100_030))
    await_values(medusa, f"{name}-kept", Counter([*range(100), *range(100_000, 100_030)]))
    expected = Counter(value * 2 for value in (*range(100), *range(100_000, 100_030)))
    await_values(medusa, out, expected)
    assert medusa.marker(name, "passed").totals.skipped == 100


def test_a_fragment_of_another_kind_keeps_the_promise(medusa: Installation) -> None:
    """Records below the promise of a window are marked late when a filter takes over its name."""
    name, topic = "other_kind", "other_kind-in"
    start_ms = BASE - BASE % 60_000
    head = ONE.format(name=name, stream="readings", topic=topic).replace("1h", "1s")
    count = "{{aggregate: {of}, window: {size}, by: [sensor], compute: {{n: {n}}}}}\n"
    head += "  seconds: " + count.format(of="readings", size="1s", n="count(*)")
    outputs = f"outputs: {{seconds: {{topic: {name}-seconds}}, last: {{topic: {name}-last}}}}\n"
    minutes = "  last: " + count.format(of="seconds", size="60s", n="sum(n)")
    medusa.deploy(head + minutes + outputs, SCHEMAS)

    def send_at(after_ms: int) -> None:
        reading = {"sensor": "a", "value": after_ms, "at": start_ms + after_ms}
        medusa.send(topic, medusa.encoded(f"{topic}-value", READING, reading), partition=0)
        medusa.producer.flush(10)

    def is_promised() -> bool:
        # The promise may be published first: no window ends before the minute does, read or not.
        marker = medusa.marker(name, "last")
        promised = marker.boundary_ms is not None and marker.boundary_ms >= start_ms + 59_000
        return promised and marker.totals.records_in == 1

    send_at(100)
    medusa.await_state(name, "last", LaneState.RUNNING)
    medusa.wait_for(is_promised, "the minute is promised, and its row is read", within_s=WITHIN_S)
    medusa.deploy(f"{head}  last: {{filter: seconds, where: n > 0}}\n{outputs}", SCHEMAS)
    medusa.await_state(name, "last", LaneState.RUNNING, epoch=2)
    out = f"{name}-last"
    send_at(30_100)
    medusa.wait_for(lambda: medusa.records(out), "a late result", within_s=WITHIN_S)
    send_at(70_100)
    medusa.wait_for(lambda: len(medusa.records(out)) > 1, "a result", within_s=WITHIN_S)
    assert [row["n"] for row in medusa.decoded(out)] == [1, 1]
    late, in_time = (dict(record.headers) for record in medusa.records(out))
    assert int(late[LATE_RESULT] or b"") >= start_ms + 59_000
    assert LATE_RESULT not in in_time
    assert len(medusa.records(f"{name}-seconds")) == 3
    assert medusa.marker(name, "last").totals.late_dropped == 0


def test_plan_prints_the_offset_ranges(medusa: Installation) -> None:
    """Per partition, in JSON."""
    name, topic = "announced", "announced-in"
    medusa.deploy(FILTER.format(name=name, stream="readings", topic=topic), SCHEMAS)
    send(medusa, topic, range(5))
    await_values(medusa, f"local.{name}.passed", Counter(range(5)))
    medusa.create_topic(f"{name}-next", partitions=2)
    send(medusa, f"{name}-next", range(7))
    moved = FILTER.format(name=name, stream="readings", topic=f"{name}-next")
    chosen = Choices(inputs={StreamName("readings"): InputFrom.BEGINNING})
    (changed,) = medusa.compared(moved, SCHEMAS, chosen).changes.announced
    assert (changed.fared, changed.ranges) == (Fared.READ, ((0, 0, 7), (1, 0, 0)))
