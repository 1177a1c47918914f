from dataclasses import replace

import pytest

from pipeline.clock import Deadline
from pipeline.dead_letters.choose import LetterFilter
from pipeline.errors import RefusedError
from pipeline.operations.connections import Connections
from pipeline.operations.dead_letters.redrive import Redrive, decoded_value
from pipeline.planner.plan import Fragment
from schemas.avro import parse
from schemas.codec import encode
from schemas.wire import join
from tests.unit.dead_letters.support import NAMES, letter
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


def test_a_value_is_decoded_from_the_version_that_it_was_written_with(
    world: World, connections: Connections
) -> None:
    """The reader's version has its fields in another order."""
    fields = '{"name": "a", "type": "long"}', '{"name": "at", "type": "long"}'
    older, newer = (
        f'{{"type": "record", "name": "R", "fields": [{", ".join(some)}]}}'
        for some in (fields, fields[::-1])
    )
    written = world.registry.register("ticks-value", older)
    body = encode(parse(older), {"a": 7, "at": 1_700_000_000_000})
    one = letter()
    framed = replace(one, record=replace(one.record, value=join(written, body)))
    found = decoded_value(framed, parse(newer), connections.registry)
    assert found == {"at": 1_700_000_000_000, "a": 7}


def test_it_is_an_error_if_nothing_can_be_sent(
    world: World, connections: Connections, moving: Fragment
) -> None:
    """The hint is the alternative."""
    redrive = Redrive(moving, LetterFilter(reason="late"), None, connections, world.clock)
    with pytest.raises(RefusedError, match="no dead letter can be sent again: 1 late") as refused:
        redrive.check(redrive.preview())
    assert "medusa replay cars.moving" in refused.value.hint
