"""A follower has the state and the results of its owner, and finds every difference.

An owner of each kind of box reads random records, some of them late. A follower builds the state
after some batch, and repeats those after it, in random numbers at once.
"""

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from brokers.embedded.stack import EmbeddedStack
from pipeline.ids import BatchId, Epoch, Incarnation, NetworkVersion, Offset
from pipeline.lanes.batch import BatchFacts, Written, next_marker
from pipeline.lanes.following import Repeat, follow
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.commit_marker import CommitMarker
from pipeline.spark.batch.rejected import refused_checksum
from pipeline.spark.batch.repeated import judged_otherwise, other_results
from pipeline.spark.batch.results import Results
from pipeline.spark.batch.verdict import Judge
from pipeline.spark.run.steered_query import Answer
from tests.system.steered.cases import STATEFUL, of_tiers
from tests.system.steered.rebuilds import At, Spark, batches_with_late, course
from tests.system.steered.runs import NOW, Result, filled
from tests.system.steered.test_rebuilds import BATCHES, RECORDS, SEEDS

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]
AT_ONCE, WHOLE = 4, 10_000
SECOND = pytest.mark.second_tier("three kinds of state have a case here in the first tier")
FIRST_TIER = {("session", 1), ("left", 2), ("deduplicate", 1)}
CASES = of_tiers(FIRST_TIER, SECOND, STATEFUL)


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner that has executed its batches.

    Args:
        spark: executes batches.
        states: the lane after each batch.
        markers: of each batch.
        results: of each batch.
    """

    spark: Spark
    states: Sequence[At]
    markers: Sequence[CommitMarker]
    results: Sequence[Counter[Result]]

    def repeated(
        self, folder: Path, since: At, steps: Sequence[Repeat]
    ) -> tuple[list[Counter[Result]], list[str]]:
        """Build a state, and repeat batches; returns their results, and what differs."""
        last = self.spark.rebuild(folder, since, None, dict.fromkeys(since.end, Offset(0)), WHOLE)
        inspector, at = self.spark.inspector, self.markers[since.batch]
        before, differing = [at, *(step.marker for step in steps)], list[str]()

        def note(facts: BatchFacts, results: Results) -> None:
            done = len(noted)
            marker, lowered = steps[done].marker, self.spark.case.lowered
            noted.append(facts.batch)
            why = judged_otherwise(marker, facts, inspector)
            differing.append(why or other_results(before[done], marker, results, lowered))

        noted = list[BatchId]()
        answers = [Answer(step.marker.end, step.marker.eviction_ms) for step in steps]
        found = self.spark.execute(folder, last + 1, answers, note)
        return found, [why for why in differing if why]


def owned(spark: Spark, rng: Random, folder: Path) -> Owner:
    """Execute random batches as an owner does."""
    fragment, inspector = spark.case.fragment, spark.inspector
    batches = tuple(batches_with_late(rng, spark.case.times, BATCHES))
    states = course(spark.case, batches)
    judge = Judge(fragment, NetworkVersion(1), {})
    request = StartRequest(Epoch(1), "digest", stateful=True, on_change=None, place="here")
    begin = dict.fromkeys(spark.case.times, Offset(0))
    markers = [first_marker(request, Incarnation("one"), begin, NOW)]

    def note(facts: BatchFacts, results: Results) -> None:
        last, rejected = markers[-1], []
        if (look := judge.inspected(last, facts)) is not None:
            rejected = inspector.rejected(look.start, look.end, look.late_ms)
        written = Written(
            records=results.computed().table.num_rows,
            dead_letters=len(rejected),
            late=len(rejected),
            checksum=refused_checksum(rejected),
            results=results.checksum,
        )
        markers.append(
            next_marker(
                last,
                facts,
                written,
                epoch=Epoch(1),
                needed=begin,
                letters=(),
                output_ends={},
                boundary_ms=None,
                now_ms=NOW,
            )
        )

    answers = [Answer(state.end, state.watermark_ms) for state in states]
    results = spark.execute(folder, 0, answers, note)
    return Owner(spark, states, markers[1:], results)


def steps_after(owner: Owner, since: int, rng: Random) -> list[Repeat]:
    """What a follower repeats that sees a random number of markers at once."""
    waiting, at, found = list(owner.markers[since + 1 :]), owner.markers[since], list[Repeat]()
    while waiting:
        step = follow(at, waiting[: rng.randint(1, AT_ONCE)], WHOLE)
        assert isinstance(step, Repeat), step
        found.append(step)
        at = waiting[step.number - 1]
        del waiting[: step.number]
    return found


def all_of(results: Sequence[Counter[Result]]) -> Counter[Result]:
    """The results of all batches."""
    return sum(results, Counter[Result]())


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize(("kind", "sources"), CASES)
def test_a_follower_has_the_results_of_its_owner(
    kind: str,
    sources: int,
    seed: int,
    node_session: SparkSession,
    embedded_stack: EmbeddedStack,
    tmp_path: Path,
) -> None:
    """And finds it out if its state lacks a record, or if a late one was taken in."""
    name = f"followed_{kind}_{sources}_{seed}"
    rng = Random(zlib.crc32(name.encode()))
    brokers = embedded_stack.settings.kafka_bootstrap_servers
    spark = Spark(filled(kind, sources, name, rng, brokers, most=RECORDS), node_session, brokers)
    owner = owned(spark, rng, tmp_path / "owner")
    since = owner.states[rng.randint(1, len(owner.states) // 2)]
    steps = steps_after(owner, since.batch, rng)
    expected = all_of(owner.results[since.batch + 1 :])
    found, differing = owner.repeated(tmp_path / "alike", since, steps)
    assert (all_of(found), differing) == (expected, [])

    accepted = [
        (at, offset)
        for at, end in sorted(since.end.items())
        for offset in range(since.needed[at], end)
        if (at, offset) not in since.late
    ]
    if accepted:
        lacking = replace(since, late=since.late | {rng.choice(accepted)})
        found, differing = owner.repeated(tmp_path / "lacking", lacking, steps)
        assert bool(differing) == (all_of(found) != expected)
    late = [n for n, step in enumerate(steps) if n and step.marker.judged and _late(step)]
    if late:
        merged = [*steps[: late[0] - 1], *steps[late[0] :]]  # the watermark before it is left out
        found, differing = owner.repeated(tmp_path / "late", since, merged)
        assert differing


def _late(step: Repeat) -> bool:
    return step.marker.judged is not None and step.marker.judged.late
