"""A short run of `tests.faults.follow`; for ten minutes and more cases, run it by hand."""

from functools import partial
from pathlib import Path

import pytest

from tests.faults.cases import CASES
from tests.faults.follow import follow, opened
from tests.faults.world import Worlds

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]


@pytest.mark.second_tier("test_followers.py compares batches in the first tier, in one process")
def test_a_follower_has_the_state_of_a_live_owner(worlds: Worlds, tmp_path: Path) -> None:
    """With late, bad and redriven records; then it goes on in its query."""
    spark = partial(opened, tmp_path)
    fine = False
    try:
        (done,) = follow(worlds.get(), [CASES["window"]], 25, 1, spark, print)
        fine = not done.findings
    finally:
        if not fine:
            worlds.drop()
    assert fine, "\n".join(str(finding) for finding in done.findings[:10])
    assert min(done.batches, done.redriven, done.revived, done.late, done.bad, done.rows) > 0
