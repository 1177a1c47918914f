"""Many destroys and deploys of a network under one name, on one node.

Some of the destroys are from another machine, and leave checkpoints on this one.
"""

import time
from collections import Counter
from dataclasses import dataclass

import pytest

from pipeline.catalog.fragment_status import LaneState
from tests.system.support import OWNER, READING, Installation

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

FEW, MANY = 6, 20
"""Numbers of cycles; in six of them each box name is reused once with another document."""
LONG = pytest.mark.second_tier("the same with fewer cycles")
RECORDS = 8
"""Readings sent in each cycle, a second apart in event time."""
WITHIN_S = 120.0
BASE = int(time.time()) // 10 * 10_000 - 1_000_000
HEAD = """
network: {name}
streams:
  readings:
    topic: {name}-in
    schema: reading.avsc
    event_time: at
    lateness: 1s
    idle_after: 1h
    partitions: 1
"""
FILTER = HEAD + "boxes: {{{box}: {{filter: readings, where: value % 5 != {number}}}}}\n"
WINDOWS = HEAD + (
    "boxes: {{{box}: {{aggregate: readings, window: {number}s, compute: {{n: count(*)}}}}}}\n"
)


@dataclass(frozen=True, slots=True)
class Cycle:
    """One life of a network: its only box, and the expected results."""

    network: str
    number: int

    @property
    def box(self) -> str:
        """The box's name; a name is reused with another document after an interval."""
        return ("passed", "counts", "chosen", "counts")[self.number % 4]

    @property
    def document(self) -> str:
        """The document; it differs between cycles with the same box name."""
        text = WINDOWS if self.box == "counts" else FILTER
        return text.format(name=self.network, box=self.box, number=self._number)

    def expected(self, values: range) -> Counter[int]:
        """The results over all readings in the input topic."""
        if self.box != "counts":
            return Counter(value for value in values if value % 5 != self._number)
        origin_s = BASE // 1_000
        starts = Counter((origin_s + value) // self._number for value in values)
        closed_s = origin_s + values[-1] - 1  # the lateness keeps the last windows open
        return Counter(n for start, n in starts.items() if (start + 1) * self._number <= closed_s)

    @property
    def _number(self) -> int:
        return 2 + self.number % 3 if self.box == "counts" else self.number % 5


def send(medusa: Installation, name: str, values: range) -> None:
    """Send readings a second apart."""
    for value in values:
        reading = {"sensor": "a", "value": value, "at": BASE + value * 1_000}
        medusa.send(f"{name}-in", medusa.encoded(f"{name}-in-value", READING, reading))
    medusa.producer.flush(10)


def published(medusa: Installation, topic: str) -> Counter[int]:
    """The results in an output topic."""
    return Counter(row.get("n", row.get("value")) for row in medusa.decoded(topic))


@pytest.mark.parametrize("cycles", [FEW, pytest.param(MANY, marks=LONG)])
def test_each_life_of_a_network_runs_its_own_document(medusa: Installation, cycles: int) -> None:
    """Same name, same versions, other documents and boxes; another network is not affected."""
    schemas = {"reading.avsc": READING}
    network, other = f"cycled_{cycles}", f"steady_{cycles}"
    steady = FILTER.format(name=other, box="passed", number=9)
    with medusa.node("cycles"):
        medusa.deploy(steady, schemas)
        before = medusa.await_state(other, "passed", LaneState.RUNNING)
        for cycle in (Cycle(network, number) for number in range(cycles)):
            values = range((cycle.number + 1) * RECORDS)
            medusa.deploy(cycle.document, schemas)
            new = values[-RECORDS:]
            send(medusa, network, new)
            send(medusa, other, new)
            expected = cycle.expected(values)

            def all_there(
                topic: str = f"{OWNER}.{network}.{cycle.box}", count: int = expected.total()
            ) -> bool:
                return published(medusa, topic).total() >= count

            medusa.wait_for(all_there, f"the results of cycle {cycle.number}", within_s=WITHIN_S)
            assert published(medusa, f"{OWNER}.{network}.{cycle.box}") == expected, cycle
            # Its checkpoint remains; the next life of a box of that name sets it aside.
            medusa.destroy(network, elsewhere=cycle.box == "counts")
        every = range(cycles * RECORDS)
        medusa.wait_for(
            lambda: published(medusa, f"{OWNER}.{other}.passed").total() >= len(every),
            "the other network's results",
            within_s=WITHIN_S,
        )
        after = medusa.await_state(other, "passed", LaneState.RUNNING)
    assert published(medusa, f"{OWNER}.{other}.passed") == Counter(every)
    assert (after.epoch, after.restarts) == (before.epoch, 0)
