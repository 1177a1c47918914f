"""Spark executes planned batches exactly: ends, event time, and what each batch releases.

Random plans over random records, for each kind of box: rows and their partners are read and
released in one batch, either side first; batches without records; queries that are stopped, that
fail inside a batch and repeat it, and batches that are withdrawn. The results are those of one job
over all records; after each batch all results up to its promise are there, and none comes later.
"""

import os
import zlib
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from brokers.embedded.stack import EmbeddedStack
from tests.system.steered.cases import KINDS, of_tiers
from tests.system.steered.plans import random_steps
from tests.system.steered.runs import Run, filled, reference

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]
SEEDS = int(os.environ.get("STEERED_SEEDS", "1"))
"""Random plans of each case."""
BATCHES = 8
SECOND = pytest.mark.second_tier("each kind of state has a case here in the first tier")
FIRST_TIER = {
    ("tumbling", 1),
    ("session", 2),
    ("left", 2),
    ("as_of", 2),
    ("deduplicate", 1),
    ("map", 2),
}
CASES = of_tiers(FIRST_TIER, SECOND, KINDS)


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize(("kind", "sources"), CASES)
def test_batches_are_executed_as_planned(
    kind: str,
    sources: int,
    seed: int,
    node_session: SparkSession,
    embedded_stack: EmbeddedStack,
    tmp_path: Path,
) -> None:
    """See the module."""
    name = f"steered_{kind}_{sources}_{seed}"
    rng = Random(zlib.crc32(name.encode()))
    brokers = embedded_stack.settings.kafka_bootstrap_servers
    case = filled(kind, sources, name, rng, brokers)
    stateful = case.lowered.core is not None
    steps = tuple(random_steps(rng, case.times, BATCHES, stateful=stateful))
    expected = reference(case, node_session, brokers)
    run = Run(case, node_session, brokers, tmp_path / "checkpoint", steps)
    run.run(expected)
    assert run.found == expected
