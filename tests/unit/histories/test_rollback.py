"""Random histories of lanes with rollback recovery."""

from types import ModuleType

import pytest

from tests.histories.history import draw, run
from tests.histories.mutants import cuts_are_dropped, ids_are_places
from tests.profiles import examples

KINDS = frozenset(
    {"restart", "take_over", "set_back", "grown", "suspect", "trust", "move"}
    | {"reliability", "recovery", "lateness", "retention"}
)


@pytest.mark.parametrize("seed", range(examples(30)))
def test_results_are_exact_by_id(seed: int) -> None:
    """None is lost, repeats are equal, and none comes that its batch did not have."""
    outcome = run(draw(seed, KINDS, rolls_back=True))
    assert not outcome.wrong, "\n".join(outcome.log)


@pytest.mark.parametrize(("mutant", "seeds"), [(cuts_are_dropped, 60), (ids_are_places, 60)])
def test_a_planted_defect_is_found(mutant: ModuleType, seeds: int) -> None:
    """The reference differs from it."""
    kinds = frozenset(mutant.KINDS.split(","))
    with mutant.mutated():
        assert any(run(draw(seed, kinds, rolls_back=True)).wrong for seed in range(seeds))
