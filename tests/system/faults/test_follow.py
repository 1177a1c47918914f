"""A short run of `tests.faults.follow`; for ten minutes and more cases, run it by hand."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.faults.cases import CASES
from tests.faults.follow import follow, opened
from tests.faults.world import Worlds

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

OUTER_JOINS = ("left_join", "right_join", "outer_join")


@pytest.mark.second_tier("test_followers.py compares batches in the first tier, in one process")
@pytest.mark.parametrize("names", [("window",), OUTER_JOINS], ids=", ".join)
def test_a_follower_has_the_state_of_a_live_owner(
    worlds: Worlds, tmp_path: Path, names: Sequence[str]
) -> None:
    """With late, bad and redriven records; then it goes on in its query."""
    spark = partial(opened, tmp_path)
    fine = False
    try:
        done = follow(worlds.get(), [CASES[name] for name in names], 25, 1, spark, print)
        wrong = [finding for one in done for finding in one.findings]
        fine = not wrong
    finally:
        if not fine:
            worlds.drop()
    assert fine, "\n".join(str(finding) for finding in wrong[:10])
    for one in done:
        counts = (one.batches, one.redriven, one.revived, one.late, one.bad, one.rows)
        assert min(counts) > 0, str(one)
