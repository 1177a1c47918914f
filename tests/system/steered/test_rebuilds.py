"""A rebuilt state is the lane's: later batches have the results that they had before.

A lane of each kind of box reads random records, some of them late. Then its state after some batch
is rebuilt, in pieces of random size, with what the dead letters name left out: from the log, and
from an older checkpoint. The batches after it are executed again on each of these states.
"""

import os
import shutil
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from brokers.embedded.stack import EmbeddedStack
from pipeline.boundaries.next_batch import Batch
from pipeline.ids import Offset
from pipeline.spark.run import rebuild_query
from tests.system.steered.cases import STATEFUL, of_tiers
from tests.system.steered.rebuilds import At, Spark, batches_with_late, course
from tests.system.steered.runs import Result, filled

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]
SEEDS = int(os.environ.get("STEERED_SEEDS", "1"))
"""Random courses of each case."""
BATCHES, RECORDS = 12, 30
SECOND = pytest.mark.second_tier("each kind of state has a case here in the first tier")
FIRST_TIER = {("sliding", 1), ("session", 1), ("left", 2), ("as_of", 2), ("deduplicate", 1)}
CASES = of_tiers(FIRST_TIER, SECOND, STATEFUL)
COPIES_MAX = 10
MANY = 130
"""Batches of a long course: more than checkpoints keep files of."""


@pytest.fixture(autouse=True)
def _some_rebuilds_drop_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every kind."""
    rng = Random(1)
    monkeypatch.setattr(rebuild_query, "drops_meanwhile", lambda *_, **__: rng.random() < 0.7)


@dataclass(frozen=True, slots=True)
class Course:
    """A lane, executed on Spark; `root` is for its checkpoints."""

    spark: Spark
    rng: Random
    batches: tuple[Batch, ...]
    root: Path

    def check(self, since: tuple[int, ...], until: int) -> None:
        """Rebuild the state after batch `until`, from the log and from the states after others."""
        states = course(self.spark.case, self.batches)
        at, later = states[until], self.batches[until + 1 :]
        found = self._executed(states, (*since, until, len(states) - 1))[until + 1 :]
        begins = dict.fromkeys(at.end, Offset(0)), at.needed
        for number, begin in enumerate(begins):
            folder, most = self.root / f"log-{number}", self._most
            last = self.spark.rebuild(folder, at, None, begin, most)
            again = self.spark.batches(folder, last + 1, later, at.watermark_ms)
            assert again == found, f"from the log, in pieces of {most}"
        for batch in since:
            folder, most = self.root / f"after-{batch}", self._most
            last = self.spark.rebuild(folder, at, states[batch], at.end, most)
            again = self.spark.batches(folder, last + 1, later, at.watermark_ms)
            assert again == found, f"from batch {batch}, in pieces of {most}"

    def check_lasting(self, since: int, until: int) -> None:
        """Rebuild the state after batch `until` from that of another, and go on in its query."""
        states = course(self.spark.case, self.batches)
        at, later = states[until], self.batches[until + 1 :]
        found = self._executed(states, (since, until, len(states) - 1))[until + 1 :]
        folder, most = self.root / f"after-{since}", self._most
        done = self.spark.rebuilt(folder, at, states[since], at.end, most, lasts=True)
        assert self.spark.go_on(done, later, at.watermark_ms) == found, f"in pieces of {most}"

    def _executed(self, states: list[At], cuts: tuple[int, ...]) -> list[Counter[Result]]:
        """The results of all batches; the checkpoint at each cut is kept."""
        folder, first, found = self.root / "lane", 0, list[Counter[Result]]()
        for cut in cuts:
            before_ms = states[first - 1].watermark_ms if first else None
            found += self.spark.batches(folder, first, self.batches[first : cut + 1], before_ms)
            first = cut + 1
            _copy(folder, self.root / f"after-{cut}")
        return found

    @property
    def _most(self) -> int:
        return self.rng.randint(4, 25)


def _copy(folder: Path, into: Path) -> None:
    """Copy a checkpoint; Spark may remove files of old batches from it meanwhile."""
    for _ in range(COPIES_MAX):
        try:
            shutil.copytree(folder, into)
        except shutil.Error:
            shutil.rmtree(into)
        else:
            return
    pytest.fail(f"{folder} changes all the time")


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize(("kind", "sources"), CASES)
def test_a_rebuilt_state_has_the_same_results(
    kind: str,
    sources: int,
    seed: int,
    node_session: SparkSession,
    embedded_stack: EmbeddedStack,
    tmp_path: Path,
) -> None:
    """See the module."""
    name = f"rebuilt_{kind}_{sources}_{seed}"
    rng = Random(zlib.crc32(name.encode()))
    brokers = embedded_stack.settings.kafka_bootstrap_servers
    case = filled(kind, sources, name, rng, brokers, most=RECORDS)
    batches = tuple(batches_with_late(rng, case.times, BATCHES))
    until = rng.randint(len(batches) // 2, len(batches) - 4)
    since = rng.randint(0, until - 1)
    lane = Course(Spark(case, node_session, brokers), rng, batches, tmp_path)
    lane.check((since,), until)


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize(("kind", "sources"), CASES)
def test_a_lane_goes_on_in_the_query_of_its_rebuild(
    kind: str,
    sources: int,
    seed: int,
    node_session: SparkSession,
    embedded_stack: EmbeddedStack,
    tmp_path: Path,
) -> None:
    """From the longest stretch of batches in which no record is late."""
    name = f"lasting_{kind}_{sources}_{seed}"
    rng = Random(zlib.crc32(name.encode()))
    brokers = embedded_stack.settings.kafka_bootstrap_servers
    case = filled(kind, sources, name, rng, brokers, most=RECORDS)
    batches = tuple(batches_with_late(rng, case.times, BATCHES))
    lane = Course(Spark(case, node_session, brokers), rng, batches, tmp_path)
    lane.check_lasting(*without_late(course(case, batches)[:-2]))


def without_late(states: list[At]) -> tuple[int, int]:
    """The batches before and at the end of the longest stretch without a late record."""
    numbers = range(len(states))
    pairs = [(a, b) for a in numbers for b in numbers[a + 1 :] if states[a].late == states[b].late]
    return max(pairs, key=lambda pair: pair[1] - pair[0])


@pytest.mark.second_tier("older checkpoints of a few batches are above")
@pytest.mark.parametrize(("kind", "sources"), [("session", 1), ("full", 2), ("as_of", 2)])
def test_a_checkpoint_may_be_many_batches_old(
    kind: str,
    sources: int,
    node_session: SparkSession,
    embedded_stack: EmbeddedStack,
    tmp_path: Path,
) -> None:
    """One, ten and a hundred."""
    name = f"rebuilt_long_{kind}_{sources}"
    rng = Random(zlib.crc32(name.encode()))
    brokers = embedded_stack.settings.kafka_bootstrap_servers
    case = filled(kind, sources, name, rng, brokers, most=MANY)
    batches = tuple(batches_with_late(rng, case.times, MANY))
    until = len(batches) - 5
    ages = (100, 10, 1)
    assert until > max(ages)
    lane = Course(Spark(case, node_session, brokers), rng, batches, tmp_path)
    lane.check(tuple(until - age for age in ages), until)
