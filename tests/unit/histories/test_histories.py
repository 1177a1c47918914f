"""A few random deploy histories in memory; `python -m tests.histories` runs any number."""

import pytest

from tests.histories.history import draw, run
from tests.histories.mutants import needed_is_the_end, promise_is_early, repeats_are_written
from tests.profiles import examples

KINDS = frozenset({"lateness", "retention", "restart", "grown", "select", "window"})


@pytest.mark.parametrize("seed", range(examples(80)))
def test_what_comes_is_what_is_due(seed: int) -> None:
    """Nothing is lost, repeated or different, whatever is deployed and whatever ends."""
    outcome = run(draw(seed, KINDS))
    assert not outcome.wrong, "\n".join(outcome.log)


@pytest.mark.parametrize(
    ("mutant", "seeds"),
    [(repeats_are_written, 40), (needed_is_the_end, 40), (promise_is_early, 40)],
)
def test_a_defect_that_is_put_back_is_found(mutant: object, seeds: int) -> None:
    """The reference tells it from what is right."""
    assert hasattr(mutant, "mutated")
    with mutant.mutated():
        assert any(run(draw(seed, frozenset({"restart"}))).wrong for seed in range(seeds))
