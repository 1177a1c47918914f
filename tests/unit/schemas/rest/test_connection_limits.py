import pytest

from schemas.rest.connection_limits import (
    OVERLOADED_MAX,
    Admission,
    ConnectionLimits,
    connection_limits,
)


@pytest.mark.parametrize(
    ("served", "overloaded", "admission"),
    [
        (0, 0, Admission.SERVED),
        (1, 2, Admission.SERVED),
        (2, 0, Admission.OVERLOADED),
        (2, 1, Admission.OVERLOADED),
        (2, 2, Admission.CLOSED),
        (3, 3, Admission.CLOSED),
    ],
)
def test_limits_of_served_refused_and_closed_connections(
    served: int, overloaded: int, admission: Admission
) -> None:
    """A refused connection never takes the place of a served one."""
    assert ConnectionLimits(served=2, overloaded=2).admit(served, overloaded) is admission


@pytest.mark.parametrize(
    ("wanted", "files", "room"),
    [
        (512, 1024, ConnectionLimits(512, OVERLOADED_MAX)),
        (512, 1_048_576, ConnectionLimits(512, OVERLOADED_MAX)),
        (512, 1023, ConnectionLimits(511, OVERLOADED_MAX)),
        (512, 64, ConnectionLimits(32, 8)),
        (50, 64, ConnectionLimits(32, 8)),
        (10, 64, ConnectionLimits(10, 8)),
        (512, 1, ConnectionLimits(1, 1)),
    ],
)
def test_connections_leave_files_for_the_rest_of_the_process(
    wanted: int, files: int, room: ConnectionLimits
) -> None:
    """Together they use five eighths of its open files; at least one is served."""
    assert connection_limits(wanted, files) == room
