"""How a lane starts again: exactly, or not at all and in clear words."""

from collections import Counter
from functools import partial

import pytest

from brokers.records import NewTopicSpec
from pipeline.catalog.records import LaneState
from pipeline.ids import TopicName
from tests.system.lanes.support import READING, Installation, kill, readings

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

DOCUMENT = """
network: {name}
streams:
  readings: {{topic: {name}-in, schema: reading.avsc, event_time: at, lateness: 1s, idle_after: 1s}}
boxes:
  counts:
    aggregate: readings
    window: 1s
    by: [sensor]
    compute: {{n: count(*), total: sum(value)}}
outputs: {{counts: {{topic: {name}-out}}}}
"""
WITHIN_S = 90.0


def test_a_node_that_is_killed_and_started_again_loses_and_repeats_nothing(
    medusa: Installation,
) -> None:
    """With kill -9 while records flow, three times: the windows are those of a sequential run."""
    name = "node_killed"
    medusa.deploy(DOCUMENT.format(name=name), {"reading.avsc": READING})
    expected: Counter[tuple[str, int]] = Counter()
    totals: Counter[tuple[str, int]] = Counter()
    for life in range(1, 4):
        process = medusa.start_node("killed_node")
        try:
            medusa.await_node("killed_node", process)
            medusa.await_state(name, "counts", LaneState.RUNNING, epoch=life)
            before = len(medusa.records(f"{name}-out"))
            for reading in readings(300):
                value = medusa.encoded(f"{name}-in-value", READING, reading)
                medusa.send(f"{name}-in", value, key=reading["sensor"].encode())
                window = (reading["sensor"], reading["at"] // 1000 * 1000 + 1000)
                expected[window] += 1
                totals[window] += reading["value"]
            medusa.producer.flush(10)
            medusa.wait_for(
                partial(medusa.has_more_than, f"{name}-out", before),
                "a window of this life",
                within_s=WITHIN_S,
            )
        finally:
            kill(process)
    with medusa.node("killed_node"):
        medusa.wait_for(
            lambda: len(medusa.records(f"{name}-out")) >= len(expected),
            "all windows",
            within_s=WITHIN_S,
        )
    found = [
        ((row["sensor"], int(row["window_end"].timestamp() * 1000)), row["n"], row["total"])
        for row in medusa.decoded(f"{name}-out")
    ]
    assert sorted(found) == sorted((w, n, totals[w]) for w, n in expected.items())


def test_what_cannot_be_continued_is_refused_in_clear_words(medusa: Installation) -> None:
    """A topic that was made again: the fragment fails, and says why."""
    name = "remade"
    medusa.deploy(DOCUMENT.format(name=name), {"reading.avsc": READING})
    with medusa.node("refusing_node"):
        medusa.await_state(name, "counts", LaneState.RUNNING)
        for reading in readings(3):
            medusa.send(f"{name}-in", medusa.encoded(f"{name}-in-value", READING, reading))
        medusa.producer.flush(10)
        medusa.wait_for(
            partial(medusa.has_more_than, f"{name}-out", 0), "a window", within_s=WITHIN_S
        )
    topic = TopicName("remade-in")
    medusa.admin.delete_topics((topic,))
    medusa.admin.create_topics((NewTopicSpec(topic, 4, 1),))
    with medusa.node("refusing_node"):
        remade = medusa.await_state("remade", "counts", LaneState.FAILED)
        assert "deleted and made again" in remade.last_error
        assert "remade-in" in remade.last_error
