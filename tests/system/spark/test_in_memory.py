"""Box kinds on real Spark without servers, with random batch boundaries.

Records are out of order, some at equal times, some late, in several partitions; the results must
equal the sequential reference. Every fault case can be run in this way, and a fragment takes some
seconds: these are the cases that no other test of `make test` runs.
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
def test_results_in_memory_equal_the_reference(
    name: str, queries: MemoryQueries, tmp_path: Path
) -> None:
    """All expected results are there; in cases with state, some records are late."""
    verdict = run(CASES[name], Random(SEED), tmp_path, queries)
    assert verdict.findings == (), verdict.words()
    assert verdict.expected
    assert verdict.late or name in OF_ROWS, str(verdict)
