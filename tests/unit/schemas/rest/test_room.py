import pytest

from schemas.rest.room import TOLD_MAX, Entry, Room, room_for


@pytest.mark.parametrize(
    ("served", "told", "entry"),
    [
        (0, 0, Entry.SERVED),
        (1, 2, Entry.SERVED),
        (2, 0, Entry.TOLD),
        (2, 1, Entry.TOLD),
        (2, 2, Entry.SHUT_OUT),
        (3, 3, Entry.SHUT_OUT),
    ],
)
def test_one_more_is_served_then_told_then_shut_out(served: int, told: int, entry: Entry) -> None:
    """Whoever is told that there is no room takes room from nobody who is served."""
    assert Room(served=2, told=2).entry(served, told) is entry


@pytest.mark.parametrize(
    ("wanted", "files", "room"),
    [
        (512, 1024, Room(512, TOLD_MAX)),
        (512, 1_048_576, Room(512, TOLD_MAX)),
        (512, 1023, Room(511, TOLD_MAX)),
        (512, 64, Room(32, 8)),
        (50, 64, Room(32, 8)),
        (10, 64, Room(10, 8)),
        (512, 1, Room(1, 1)),
    ],
)
def test_connections_leave_files_for_the_rest_of_the_process(
    wanted: int, files: int, room: Room
) -> None:
    """All together they take five eighths of what it may open; at least one is served."""
    assert room_for(wanted, files) == room
