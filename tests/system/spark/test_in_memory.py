"""Kinds of boxes on Spark itself, without servers, over records that are cut into batches anywhere.

Records come out of order, some at equal times, some late, in several partitions; what comes out
has to be what the sequential reference makes of them. Every case can be run so, and a fragment
takes some seconds: here are those that `make test` does not run otherwise.
"""

from pathlib import Path
from random import Random

import pytest

from pipeline.spark.run.from_memory import MemoryQueries
from tests.faults.cases import CASES
from tests.faults.memory import run

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

SEED = 1
OF_ROWS = ("flat_map", "route", "union")
OF_TIME = ("sliding", "sessions", "top", "deduplicate", "left_join")


@pytest.mark.parametrize("name", [*OF_ROWS, *OF_TIME])
def test_results_in_memory_are_those_of_the_reference(
    name: str, queries: MemoryQueries, tmp_path: Path
) -> None:
    """Results are expected, and all of them come; where there is state, some records are late."""
    verdict = run(CASES[name], Random(SEED), tmp_path, queries)
    assert verdict.findings == (), verdict.words()
    assert verdict.expected
    assert verdict.late or name in OF_ROWS, str(verdict)
