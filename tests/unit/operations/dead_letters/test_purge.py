from pipeline.ids import Millis
from pipeline.operations.connections import Connections
from pipeline.operations.dead_letters.purge import removable_letters, remove_letters
from pipeline.planner.plan import Fragment
from tests.unit.dead_letters.support import NAMES, NOW
from tests.unit.deploy.twins import World


def test_letters_that_no_rebuild_needs_are_removed(
    world: World, connections: Connections, moving: Fragment
) -> None:
    """The marker needs them from offset 2 on; the preview changes nothing."""
    found = removable_letters(moving, None, connections)
    assert (found.removed, found.needed, found.younger, len(world.records(NAMES.dead_letters))) == (
        2,
        1,
        0,
        3,
    )
    remove_letters(moving, found, connections)
    assert [record.offset for record in world.records(NAMES.dead_letters)] == [2]


def test_younger_letters_stay(connections: Connections, moving: Fragment) -> None:
    """By their append times."""
    found = removable_letters(moving, Millis(NOW + 1), connections)
    assert (found.removed, found.younger) == (1, 2)
