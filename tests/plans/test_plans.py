"""Plans as golden files: `NAME.txt` beside this file is what `explain` says about a network."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.network.model import Network
from pipeline.planner.explain import explain
from pipeline.planner.planner import plan
from tests.unit.planner.networks import (
    MINUTE,
    OWNER,
    aggregated,
    column,
    external,
    filtered,
    joined,
    mapped,
    network,
    tolls,
)

HERE = Path(__file__).parent
SOURCE = external("prices", column("symbol"), column("price"))


def _nullable_groups() -> Network:
    """Twins that are merged, with rows that the join would not have paired."""
    return tolls(nullable=True)


def _visible_twin() -> Network:
    """Twins that stay two, since one of them is an output."""
    return tolls(outputs=("average_speed",))


def _stateless_chain() -> Network:
    """A shared filter that is copied, an output that is read again, a box that nobody reads."""
    known = filtered("known", SOURCE, "`price` > 0")
    cents = mapped("cents", known, {"symbol": "`symbol`", "cents": "`price` + `price`"})
    dear = filtered("dear", cents, "`cents` > 100")
    cheap = filtered("cheap", known, "`price` < 5")
    return network((SOURCE,), (known, cents, dear, cheap), ("cents",))


def _pushed_filter() -> Network:
    """A filter above a join of windows, which moves below the join and below an aggregate."""
    by = {"symbol": "`symbol`"}
    high = aggregated("high", SOURCE, by, {"high": ("max", "`price`")})
    volume = aggregated("volume", SOURCE, by, {"n": ("count", "`price`")}, size_ms=2 * MINUTE)
    select = {"symbol": "`left`.`symbol`", "high": "`left`.`high`", "n": "`right`.`n`"}
    pairs = joined("pairs", high, volume, (("symbol", "symbol"),), select, (-MINUTE, 0))
    wanted = filtered("wanted", pairs, "`symbol` > 7")
    return network((SOURCE,), (high, volume, pairs, wanted), ("wanted",))


CASES: dict[str, Callable[[], Network]] = {
    "tolls": tolls,
    "nullable_groups": _nullable_groups,
    "visible_twin": _visible_twin,
    "stateless_chain": _stateless_chain,
    "pushed_filter": _pushed_filter,
}


@pytest.mark.parametrize("name", CASES)
def test_plan_reads_as_agreed(name: str, *, rewrite: bool) -> None:
    """Any change of a plan or of its explanation shows up here, to be read in review."""
    text = explain(plan(CASES[name](), OWNER))
    golden = HERE / f"{name}.txt"
    if rewrite:
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_every_golden_file_has_a_case() -> None:
    """No golden file outlives its network."""
    assert {path.stem for path in HERE.glob("*.txt")} == set(CASES)
