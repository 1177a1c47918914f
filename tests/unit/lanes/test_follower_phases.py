"""Phases of a follower."""

from pathlib import Path

import pytest

from pipeline.errors import BrokenInvariantError
from pipeline.lanes.follower_phases import (
    TRANSITIONS,
    FollowerCourse,
    FollowerEvent,
    FollowerPhase,
)

DOCUMENT = Path(__file__).parents[3] / "docs" / "lane-states.md"
PLACE = "fragment tolls.speed"


@pytest.mark.parametrize("phase", FollowerPhase)
@pytest.mark.parametrize("event", FollowerEvent)
def test_only_transitions_of_the_table_are_possible(
    phase: FollowerPhase, event: FollowerEvent
) -> None:
    """Every other one raises, names the fragment and changes nothing."""
    course = FollowerCourse(PLACE)
    course.phase = phase
    expected = TRANSITIONS.get((phase, event))
    if expected is not None:
        course.move(event)
        assert course.phase is expected
        return
    with pytest.raises(BrokenInvariantError, match=phase.value) as caught:
        course.move(event)
    assert (caught.value.place, course.phase) == (PLACE, phase)


def test_every_phase_can_be_reached() -> None:
    """From none at all; only a taken one has no further event, since its lane goes on."""
    reached = {FollowerPhase.ABSENT}
    while more := {b for (a, _), b in TRANSITIONS.items() if a in reached} - reached:
        reached |= more
    assert reached == set(FollowerPhase)
    assert set(FollowerPhase) - {phase for phase, _ in TRANSITIONS} == {FollowerPhase.TAKEN}


def test_a_follower_is_level_only_after_its_state_was_built() -> None:
    """Or if there is none to build."""
    course = FollowerCourse(PLACE)
    found = []
    for event in (
        FollowerEvent.BEGUN,
        FollowerEvent.BUILT,
        FollowerEvent.REPEATED_ALL,
        FollowerEvent.FELL_BEHIND,
        FollowerEvent.BUILT,
        FollowerEvent.FAILED,
        FollowerEvent.BEGUN,
        FollowerEvent.NOTHING_TO_BUILD,
    ):
        course.move(event)
        found.append(course.is_level)
    assert found == [False, False, True, False, False, False, False, True]


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    names = {phase: phase.value.replace(" ", "_") for phase in FollowerPhase}
    lines = [
        f"    {names[phase]} --> {names[after]}: {event.value}"
        for (phase, event), after in TRANSITIONS.items()
    ]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {names[FollowerPhase.ABSENT]}", *lines])


def test_the_documented_diagram_is_the_table() -> None:
    """The diagram in the documentation is generated from the code."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert f"```mermaid\n{diagram()}\n```" in text
    for name in (*FollowerPhase, *FollowerEvent):
        assert f"| {name.value} |" in text
