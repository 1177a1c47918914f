"""Rollback recovery: the owner is killed again and again, and each result counts once by its id."""

import random
import time
from collections import Counter
from functools import partial

import pytest

from brokers.embedded.processes import Child
from brokers.records import KafkaRecord
from pipeline.catalog.fragment_status import LaneState
from pipeline.lanes.result_headers import RESULT_ID
from tests.system.nodes.feeds import (
    BASE_S,
    COUNTS,
    SCHEMAS,
    WITHIN_S,
    Feed,
    await_results,
    owner,
    running_nodes,
    started,
)
from tests.system.support import WINDOWS, Installation, kill

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

NAMES = ("again_a", "again_b")
KILLS = 4
FILTER = """\
network: {name}
streams:
  readings: {{topic: {name}-in, schema: reading.avsc, event_time: at, partitions: 2}}
boxes:
  counts: {{filter: readings, where: value >= 0}}
outputs:
  counts: {{topic: {name}-out}}
"""
ROLLBACK = "reliability: {{mode: {mode}, recovery: rollback}}\n"


def content(record: KafkaRecord) -> tuple[object, ...]:
    """All of a result but its place."""
    return record.partition, record.key, record.value, record.timestamp_ms, record.headers


def by_id(medusa: Installation, topic: str) -> dict[bytes | None, KafkaRecord]:
    """The results by their ids; those with one id have to be equal."""
    found: dict[bytes | None, KafkaRecord] = {}
    for record in medusa.records(topic):
        first = found.setdefault(dict(record.headers).get(RESULT_ID), record)
        assert content(first) == content(record)
    assert None not in found
    return found


def kill_often(medusa: Installation, nodes: dict[str, Child], name: str, seed: int) -> None:
    """Kill the owner at any moment; the other node goes on, and the killed one comes back."""
    rng = random.Random(seed)
    for _ in range(KILLS):
        await_results(medusa, name, 4)
        time.sleep(rng.random())
        before = owner(medusa, name)
        kill(nodes[before.node])
        medusa.await_state(name, COUNTS, LaneState.RUNNING, epoch=before.epoch + 1)
        await_results(medusa, name, 2)
        nodes[before.node] = started(medusa, before.node)
        medusa.await_node(before.node, nodes[before.node])


@pytest.mark.second_tier("results without state are killed alike in the first tier")
@pytest.mark.parametrize("mode", ["upstream_backup", "active_standby"])
def test_windows_are_exact_by_id(medusa: Installation, mode: str) -> None:
    """Each window once, whoever wrote it how often; and no id has two contents."""
    name = f"again_{mode}"
    with running_nodes(medusa, *NAMES) as nodes:
        medusa.deploy(WINDOWS.format(name=name) + ROLLBACK.format(mode=mode), SCHEMAS)
        medusa.await_state(name, COUNTS, LaneState.RUNNING)
        feed = Feed(medusa, name)
        feed.start()
        kill_often(medusa, nodes, name, seed=1)
        feed.finish()
        seconds = feed.seconds // 10 * 10
        expected = {
            (f"s{partition}", start, 10, sum(range(start, start + 10)))
            for start in range(0, seconds, 10)
            for partition in (0, 1)
        }
        topic = f"{name}-out"
        there = partial(_has_all, medusa, topic, len(expected))
        medusa.wait_for(there, f"{seconds} s of windows", within_s=WITHIN_S)
        rows = medusa.decode([record.value for record in by_id(medusa, topic).values()])
        found = Counter(
            (row["sensor"], int(row["window_start"].timestamp()) - BASE_S, row["n"], row["total"])
            for row in rows
        )
        assert found == Counter(expected)


def test_results_without_state_are_exact_by_id(medusa: Installation) -> None:
    """Each reading once: its batch is executed again with the records that it had."""
    name = "again_filter"
    with running_nodes(medusa, *NAMES) as nodes:
        text = FILTER.format(name=name) + ROLLBACK.format(mode="upstream_backup")
        medusa.deploy(text, SCHEMAS)
        medusa.await_state(name, COUNTS, LaneState.RUNNING)
        feed = Feed(medusa, name, is_late=False)
        feed.start()
        kill_often(medusa, nodes, name, seed=2)
        feed.finish()
        topic, expected = f"{name}-out", 2 * feed.seconds
        there = partial(_has_all, medusa, topic, expected)
        medusa.wait_for(there, f"{expected} readings", within_s=WITHIN_S)
        rows = medusa.decode([record.value for record in by_id(medusa, topic).values()])
        found = Counter((row["sensor"], row["value"]) for row in rows)
        assert found == Counter((f"s{p}", second) for second in range(feed.seconds) for p in (0, 1))


def _has_all(medusa: Installation, topic: str, number: int) -> bool:
    return len(by_id(medusa, topic)) >= number
