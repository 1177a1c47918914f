"""Phases of a lane."""

from pathlib import Path

import pytest

from pipeline.errors import BrokenInvariantError
from pipeline.lanes.lifecycle import TRANSITIONS, Happening, Phase, move

DOCUMENT = Path(__file__).parents[3] / "docs" / "lane-states.md"


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("happening", Happening)
def test_only_transitions_of_the_table_are_possible(phase: Phase, happening: Happening) -> None:
    """Every other one raises, names the lane and changes nothing."""
    expected = TRANSITIONS.get((phase, happening))
    if expected is not None:
        assert move(phase, happening, "fragment tolls.speed") is expected
        return
    with pytest.raises(BrokenInvariantError, match=phase.value) as caught:
        move(phase, happening, "fragment tolls.speed")
    assert caught.value.place == "fragment tolls.speed"


def test_every_phase_can_be_reached_and_left() -> None:
    """No phase is final or unused."""
    reached = {Phase.STOPPED}
    while more := {b for (a, _), b in TRANSITIONS.items() if a in reached} - reached:
        reached |= more
    assert reached == set(Phase)
    assert {phase for phase, _ in TRANSITIONS} == set(Phase)


def test_a_permanently_failed_or_fenced_lane_never_starts_by_itself() -> None:
    """It needs another event: another desired state, or a read of the catalog."""
    for phase in (Phase.FAILED, Phase.FENCED):
        assert (phase, Happening.START_ASKED) not in TRANSITIONS


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    names = {phase: phase.value.replace(" ", "_") for phase in Phase}
    lines = [
        f"    {names[phase]} --> {names[after]}: {happening.value}"
        for (phase, happening), after in TRANSITIONS.items()
    ]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {names[Phase.STOPPED]}", *lines]) + "\n"


def test_the_documented_diagram_is_the_table() -> None:
    """The diagram in the documentation is generated from the code."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert f"```mermaid\n{diagram()}```" in text
    for name in (*Phase, *Happening):
        assert f"| {name.value} |" in text
