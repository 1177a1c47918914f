"""States of a contract."""

from pathlib import Path

import pytest

from pipeline.contracts.negotiation.states import AGREED, OPEN, TRANSITIONS, Event, State, move
from pipeline.errors import RefusedError

DOCUMENT = Path(__file__).parents[4] / "docs" / "federation" / "contracts.md"
FINAL = {State.ENDED, State.LAPSED, State.WITHDRAWN}


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("event", Event)
def test_only_transitions_of_the_table_are_possible(state: State, event: Event) -> None:
    """Every other one is refused, and names the contract."""
    expected = TRANSITIONS.get((state, event))
    if expected is not None:
        assert move(state, event, "contract a") is expected
        return
    with pytest.raises(RefusedError, match=state.value) as caught:
        move(state, event, "contract a")
    assert caught.value.place == "contract a"


def test_every_state_can_be_reached_and_only_the_last_ones_are_final() -> None:
    """A contract that has ended is not used again: its documents could be replayed."""
    reached = {State.ABSENT}
    while more := {b for (a, _), b in TRANSITIONS.items() if a in reached} - reached:
        reached |= more
    assert reached == set(State)
    assert set(State) - {state for state, _ in TRANSITIONS} == FINAL
    assert not FINAL & (AGREED | OPEN)


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    lines = [
        f"    {state.value} --> {after.value}: {event.value}"
        for (state, event), after in TRANSITIONS.items()
    ]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {State.ABSENT.value}", *lines]) + "\n"


def test_the_documented_diagram_is_the_table() -> None:
    """The diagram in the documentation is generated from the code."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert f"```mermaid\n{diagram()}```" in text
    for name in (*State, *Event):
        assert f"| {name.value} |" in text
