"""Stages are counted once, and to the group of their job."""

from typing import cast

import pytest

from pipeline.errors import BrokenInvariantError
from pipeline.spark.session.ended_stages import (
    FIELDS,
    FIRST_MS,
    EndedStage,
    EndedStages,
    by_group,
    first_job,
)
from schemas.json_value import Json

Row = tuple[int, int, str, int, int, list[int]]


def columns(*rows: Row) -> dict[str, list[Json]]:
    """The fields of stages."""
    return {name: [cast("Json", row[at]) for row in rows] for at, name in enumerate(FIELDS)}


def row(stage: int, ms: int, job: int = 1, attempt: int = 0) -> Row:
    """A stage that has ended at so many ms after a full second; its CPU is its number and one."""
    return stage, attempt, f"2026-11-28T06:00:00.{ms:03d}GMT", stage, 1, [job, job + 5]


def test_a_stage_is_taken_once_though_it_is_read_again() -> None:
    """Those of the last time are read again, since others may have ended then."""
    stages = EndedStages()
    assert stages.last_ms == FIRST_MS
    first = stages.take(columns(row(1, 5), row(2, 6)))
    assert first == (EndedStage(1, 0, 1, 2), EndedStage(2, 0, 1, 3))
    assert stages.take(columns(row(2, 6))) == ()
    again = stages.take(columns(row(2, 6), row(3, 6), row(2, 6, attempt=1)))
    assert [(one.stage, one.attempt) for one in again] == [(3, 0), (2, 1)]
    assert stages.take(columns(row(2, 6), row(3, 6), row(2, 6, attempt=1))) == ()
    assert [one.stage for one in stages.take(columns(row(3, 6), row(4, 7)))] == [4]
    assert stages.take(columns()) == ()


def test_a_missing_field_is_refused() -> None:
    """Else values of different stages would be combined."""
    found = columns(row(1, 5), row(2, 6))
    found["executorCpuTime"].pop()
    with pytest.raises(BrokenInvariantError, match="other fields than expected"):
        EndedStages().take(found)


def test_times_are_summed_by_the_group_of_the_first_job() -> None:
    """A job without a group, or that is not stored any more, counts to none."""
    stages = [EndedStage(n, 0, job, 10 * n) for n, job in enumerate((3, 3, 4, 5, 9), start=1)]
    jobs: list[Json] = [
        {"info": {"jobId": 3, "jobGroup": "x"}},
        {"info": {"jobId": 4, "jobGroup": "y"}},
        {"info": {"jobId": 5}},
    ]
    assert first_job(stages) == 3
    assert by_group(stages, jobs) == {"x": 30, "y": 30}
