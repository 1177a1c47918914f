from dataclasses import replace

import pytest

from pipeline.planner.changes import Action
from pipeline.planner.diff import changes
from pipeline.planner.digest import state_digest
from pipeline.planner.planner import plan
from pipeline.planner.render import changes_as_data, render_changes
from pipeline.planner.state import Fate, KeptState
from tests.unit.planner.networks import OWNER, tolls
from tests.unit.planner.test_diff import LIFE, PLAN, deployed


@pytest.mark.parametrize(
    ("pace_ms", "limit", "reasons"),
    [
        (500, None, ("new: pace `500ms`",)),
        (0, 4 << 30, ("new: state_limit `4GiB`",)),
        (60_000, 16 << 20, ("new: pace `1m`", "new: state_limit `16MiB`")),
    ],
)
def test_another_pace_or_state_limit_restarts_a_fragment_and_keeps_its_state(
    pace_ms: int, limit: int | None, reasons: tuple[str, ...]
) -> None:
    """The plan names it, and no choice is needed."""
    made = plan(replace(tolls(), pace_ms=pace_ms, state_limit_bytes=limit), OWNER)
    states = {f.name: KeptState(state_digest(f), LIFE) for f in PLAN.fragments}
    found = changes(made, PLAN, replace(deployed(), states=states))
    assert not found.problems
    assert {item.action for item in found.fragments} == {Action.CHANGE}
    assert {item.fate for item in found.fragments} == {Fate.KEPT}
    assert all(item.reasons[: len(reasons)] == reasons for item in found.fragments)
    assert "restarts: 3 of 3 fragments" in render_changes(found)
    assert reasons[0] in str(changes_as_data(found))


def test_a_pace_is_no_reason_why_a_state_does_not_fit() -> None:
    """The refusal names what differs in the state alone."""
    was, *_ = PLAN.fragments
    states = {was.name: KeptState("1:another", LIFE)}
    made = plan(replace(tolls(), pace_ms=500), OWNER)
    (item, *_) = changes(made, PLAN, replace(deployed(), states=states)).fragments
    assert item.fate is Fate.UNDECIDED
    assert item.refused
    assert "new: pace `500ms`" in item.reasons
    assert not [line for line in item.details if "pace" in line]
