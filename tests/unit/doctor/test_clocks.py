"""Findings about clocks."""

from pipeline.doctor.checks import findings
from pipeline.doctor.clocks import SKEW_MS, of_clocks
from pipeline.doctor.facts import Observed, Verdict
from pipeline.heartbeats.clocks import ClockOffset
from pipeline.ids import NodeId

N1, N2 = NodeId("n1"), NodeId("n2")


def at(node: NodeId | None, ahead_ms: int) -> ClockOffset:
    """An offset that is known to a second."""
    return ClockOffset(node, ahead_ms, ahead_ms + 1_000)


def test_clocks_that_agree_are_good() -> None:
    """In one line; where nothing is known there is none."""
    (found,) = of_clocks((at(N1, SKEW_MS), at(N2, -SKEW_MS), at(None, 0)))
    assert found.verdict is Verdict.GOOD
    assert found.message == (
        "those of node n1, node n2 and this machine are at most 5s from the broker's"
    )
    assert list(of_clocks(())) == []
    assert findings(Observed((), clocks=(at(N1, 0),)))[-1].what == "clocks"


def test_a_node_whose_clock_is_wrong_is_named() -> None:
    """With what depends on it; others are not."""
    (found,) = of_clocks((at(N1, 61_234), at(N2, 0), at(None, 0)))
    assert found.verdict is Verdict.DOUBTFUL
    assert found.message == "that of node n1 is 1m 1s ahead of the broker's"
    assert found.place == "node n1"
    assert "no result depends on it" in found.hint


def test_the_clock_of_this_machine_decides_what_commands_say() -> None:
    """It is not that of a node."""
    (found,) = of_clocks((at(N1, 0), at(None, -3_600_000)))
    assert found.message == "that of this machine is 59m 59s behind the broker's"
    assert "`1h` ago" in found.hint


def test_if_all_clocks_agree_but_the_brokers_that_one_is_named() -> None:
    """Retention depends on it; two that differ by more from each other are named themselves."""
    (found,) = of_clocks((at(N1, 20_000), at(N2, 21_000), at(None, 20_500)))
    assert (
        found.message
        == "that of the broker is 20s behind those of node n1, node n2 and this machine"
    )
    assert "Retention" in found.hint
    (found,) = of_clocks((at(N1, -20_000), at(None, -20_500)))
    assert "that of the broker is 19s ahead of" in found.message
    assert len(list(of_clocks((at(N1, 20_000), at(None, 40_000))))) == 2
    assert len(list(of_clocks((at(N1, 20_000),)))) == 1
