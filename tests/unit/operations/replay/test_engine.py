from typing import cast

import pytest

from pipeline.errors import RefusedError
from pipeline.ids import Millis, Offset
from pipeline.operations.replay.engine import RecordPlace, ReplayEngine
from tests.unit.operations.twins import TwinRecomputer


def test_the_event_time_of_a_record_of_an_external_stream_is_computed(
    engine: ReplayEngine, reports: list[str]
) -> None:
    """The session is opened once, only when needed."""
    assert reports == []
    cast("TwinRecomputer", engine.recomputer).times[Offset(2)] = Millis(7)
    assert engine.event_time(RecordPlace("sightings", 0, Offset(2))) == 7
    assert engine.event_time(RecordPlace("car-sightings", 0, Offset(2))) == 7
    assert reports == ["opening a Spark session"]


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        (RecordPlace("others", 0, Offset(0)), "others is no input of cars.moving"),
        (RecordPlace("sightings", 9, Offset(0)), "offset 0: the partition does not exist"),
        (RecordPlace("sightings", 0, Offset(3)), "offset 3: the partition holds the offsets 0 up"),
    ],
)
def test_a_record_that_is_not_there_is_refused(
    engine: ReplayEngine, place: RecordPlace, reason: str
) -> None:
    """Before a session is opened."""
    with pytest.raises(RefusedError, match=reason):
        engine.event_time(place)
