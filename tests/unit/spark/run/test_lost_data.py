import pytest

from pipeline.errors import RefusedError, RetryError
from pipeline.lanes.start.decision import Rebuild
from pipeline.planner.state import OnChange
from pipeline.spark.run.lost_data import in_batch, in_rebuild
from pipeline.spark.run.spark_errors import LostDataError
from tests.unit.spark.run.test_rebuild import MARKER

LOST = LostDataError("an input no longer holds records", hint="its retention overtook the lane")
GONE = RefusedError("the records from offset 5 on were removed", place="topic t", hint="choose")


def test_a_lane_whose_records_were_deleted_stops_until_a_choice() -> None:
    """The choices are named. If all records exist, it is retried."""
    assert in_batch(LOST, GONE, None) is GONE
    again = in_batch(LOST, None, None)
    assert type(again) is RetryError
    assert "but now they are there" in again.message


def test_records_deleted_before_the_first_batch_after_a_choice_are_skipped() -> None:
    """The choice was to continue without deleted records; a rebuild would have to be chosen."""
    assert in_batch(LOST, GONE, OnChange.REBUILD) is GONE
    again = in_batch(LOST, GONE, OnChange.EMPTY)
    assert type(again) is RetryError
    assert (again.message, again.place) == (GONE.message, GONE.place)


@pytest.mark.parametrize("chosen", [True, False])
def test_a_chosen_rebuild_starts_at_the_existing_records_of_the_next_start(*, chosen: bool) -> None:
    """Retention deletes its first records next. An exact one lacks records that it needs."""
    found = in_rebuild(LOST, Rebuild(MARKER, None, None, "it was asked for", chosen=chosen))
    if chosen:
        assert type(found) is RetryError
    else:
        assert found is LOST
