"""Random histories in which boxes inside of fragments are placed elsewhere, and back."""

import pytest

from tests.histories.documents import PLACE
from tests.histories.history import draw, run
from tests.profiles import examples

KINDS = frozenset({PLACE, "restart", "take_over", "set_back", "rollback", "lateness", "move"})


@pytest.mark.parametrize("seed", range(examples(30)))
def test_results_are_exact_whatever_box_runs_elsewhere(seed: int) -> None:
    """By the choices that the deploy requires: what is announced is all that differs."""
    outcome = run(draw(seed, KINDS))
    assert not outcome.wrong, "\n".join(outcome.log)
