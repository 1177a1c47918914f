import pytest

from pipeline.clock import Deadline
from pipeline.dead_letters.choose import LetterFilter
from pipeline.errors import RefusedError
from pipeline.operations.connections import Connections
from pipeline.operations.dead_letters.counts import count_letters
from pipeline.operations.dead_letters.redrive import Redrive
from pipeline.planner.plan import Fragment
from tests.unit.dead_letters.support import NAMES
from tests.unit.deploy.twins import World


def test_letters_are_counted_by_fragment_and_reason(connections: Connections) -> None:
    """With the limits of their topic: a negative one is none."""
    moving, stopped = count_letters("", connections).fragments
    assert (moving.summary.count, moving.redriven, stopped.summary.count) == (3, 0, 0)
    assert moving.summary.reasons == {"undecodable": 2, "late": 1}
    assert (moving.retention_ms, moving.retention_bytes) == (604_800_000, None)


def test_what_was_sent_again_is_unknown_without_its_topic(
    world: World, connections: Connections, moving: Fragment
) -> None:
    """One of several fragments has a problem; a single one is an error."""
    redrive = Redrive(moving, LetterFilter(), None, connections, world.clock)
    redrive.send(Deadline.after(world.clock, 1.0, "sending"))
    del world.kafka.topics[NAMES.redrive]
    found = count_letters("cars", connections)
    assert [one.redriven for one in found.fragments] == [None, 0]
    (problem,) = found.problems
    assert problem.place == f"topic {NAMES.redrive}"
    with pytest.raises(RefusedError, match="the topic is gone"):
        count_letters("cars.moving", connections)
