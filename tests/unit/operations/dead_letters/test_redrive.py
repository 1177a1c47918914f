import pytest

from pipeline.clock import Deadline
from pipeline.dead_letters.choose import LetterFilter
from pipeline.errors import RefusedError
from pipeline.operations.connections import Connections
from pipeline.operations.dead_letters.redrive import Redrive
from pipeline.planner.plan import Fragment
from tests.unit.dead_letters.support import NAMES
from tests.unit.deploy.twins import World


def test_letters_are_sent_again_once(
    world: World, connections: Connections, moving: Fragment
) -> None:
    """A preview sends nothing; late ones are refused with the reason."""
    redrive = Redrive(moving, LetterFilter(), None, connections, world.clock)
    preview = redrive.preview()
    assert (preview.sent, preview.already_sent, world.records(NAMES.redrive)) == (2, 0, [])
    (reason,) = preview.refused
    assert reason.startswith("late")
    deadline = Deadline.after(world.clock, 1.0, "sending")
    assert redrive.send(deadline) == preview
    assert len(world.records(NAMES.redrive)) == 2
    again = redrive.send(deadline)
    assert (again.sent, again.already_sent) == (0, 2)
    redrive.check(again)


def test_it_is_an_error_if_nothing_can_be_sent(
    world: World, connections: Connections, moving: Fragment
) -> None:
    """The hint is the alternative."""
    redrive = Redrive(moving, LetterFilter(reason="late"), None, connections, world.clock)
    with pytest.raises(RefusedError, match="no dead letter can be sent again: 1 late") as refused:
        redrive.check(redrive.preview())
    assert "medusa replay cars.moving" in refused.value.hint
