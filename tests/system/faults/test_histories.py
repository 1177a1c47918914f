"""Random deploy histories on real servers."""

from pathlib import Path

import pytest

from tests.histories.stack import prepared, script, wave

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

SEEDS = (1, 2)
STEPS = 4


@pytest.mark.second_tier("the unit tests run the same histories in memory")
def test_published_results_are_exact(tmp_path: Path, jar_cache: Path) -> None:
    """For random deploys and node failures."""
    with prepared(tmp_path, jar_cache) as around:
        histories = wave(around, [script(seed, STEPS) for seed in SEEDS], print)
    for history in histories:
        assert not history.outcome.wrong, "\n".join(history.outcome.log)
        assert sum(ledger.batches for ledger in history.ledgers.values())
