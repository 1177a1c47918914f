"""What is printed of moves."""

import doctest

from benchmarks import move_figures
from benchmarks.move_figures import MIB, PAUSES_MS, Built, Move, Used, level_text, summary

BUILT = Built(Used(10.0, 3.0, 0), Used(14.0, 5.5, 2 * MIB), 3 * MIB)


def test_examples_in_docstrings_hold() -> None:
    """The doctests of the module pass."""
    assert doctest.testmod(move_figures).failed == 0


def test_what_a_follower_costs_is_a_difference() -> None:
    """Of its node, and not only of it."""
    text = str(BUILT)
    assert text == "built in 4.0 s by 2.5 s of processor time, 2.0 MiB read, 3.0 MiB of state"
    assert BUILT.after.share_since(BUILT.before) == 0.625


def test_a_move_without_results_meanwhile_has_no_ratio() -> None:
    """As when nothing had to be built."""
    text = str(Move(500.0, 100.0, 900.0, BUILT, (1.0, 2.0), ()))
    assert text.endswith("p99 2 ms before, - meanwhile")
    assert "built" not in str(Move(500.0, 100.0, 900.0))


def test_latencies_of_all_moves_are_one_distribution() -> None:
    """The ratio is not a mean of ratios."""
    moves = [
        Move(500.0, 100.0, 900.0, BUILT, (100.0,) * 99, (150.0,) * 99),
        Move(700.0, 100.0, 1_100.0, BUILT, (100.0,), (400.0,)),
    ]
    text = summary("window, 2 moves", moves, PAUSES_MS["moves"])
    assert "pause median 600 ms, worst 700 ms (wanted: 1500 and 3000 ms at most, met)" in text
    assert "whole median 1000 ms" in text
    assert "p99 100 ms before, 150 ms meanwhile, 1.50 times (wanted: 2 at most)" in text
    upgrade = summary("1 upgrade", [Move(2_001.0, 1.0, 2.0)], PAUSES_MS["upgrades"])
    assert upgrade.count("\n") == 0
    assert "2000 ms at most, not met" in upgrade


def test_a_follower_is_shown_beside_its_owner() -> None:
    """A fragment without state has nothing to follow."""
    assert level_text("window", (0.5, 0.25), (10.0, 20.0)) == (
        "window, level: owner 50 % of a core, follower 25 %; lag p50 10 ms, p99 20 ms of 2 batches"
    )
    assert level_text("stateless", (0.5, 0.0), ()).endswith("nothing to follow")
