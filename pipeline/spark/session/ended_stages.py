"""Stages that have ended since the last read, and their CPU time by group of jobs. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from pipeline.errors import BrokenInvariantError
from schemas.json_value import Json, list_of, number_of, object_of, text_of

FIELDS: Final = (
    "stageId", "attemptId", "completionTime", "executorCpuTime", "executorDeserializeCpuTime",
    "jobIds",
)  # fmt: skip
"""What is read of each stage, as Spark's REST API names it."""
FIRST_MS: Final = 1 << 32
"""In 1970; larger than a 32-bit number, so that it is a long one for Java."""
_TIME: Final = "%Y-%m-%dT%H:%M:%S.%fGMT"


class EndedStage(NamedTuple):
    """A stage that has ended; `job`: the first of the jobs that needed it."""

    stage: int
    attempt: int
    job: int
    cpu_ns: int


class EndedStages:
    """Which stages were read before.

    Stages are stored in the order in which they end, several of them at one time.
    """

    def __init__(self) -> None:
        self.last_ms = FIRST_MS
        """When the last one has ended that was read."""
        self._read: frozenset[tuple[int, int]] = frozenset()

    def take(self, columns: Mapping[str, Sequence[Json]]) -> tuple[EndedStage, ...]:
        """Those of some stages that were not read before.

        Args:
            columns: the values of each field of the stages that have ended at `last_ms` or later,
                in one order.

        Raises:
            BrokenInvariantError: a field is missing in some of them.
        """
        ids, attempts, ends, cpu, setup, jobs = (columns[name] for name in FIELDS)
        lengths = {name: len(columns[name]) for name in FIELDS}
        if len(set(lengths.values())) != 1:
            raise BrokenInvariantError(
                f"the stages in Spark's store have other fields than expected: {lengths}",
                hint="use the version of PySpark that Medusa requires",
            )
        found, last_ms, at_last = [], self.last_ms, set[tuple[int, int]]()
        for row in zip(ids, attempts, ends, cpu, setup, jobs, strict=True):
            stage, attempt, ended_ms = number_of(row[0]), number_of(row[1]), _ms(row[2])
            if ended_ms > last_ms:
                last_ms, at_last = ended_ms, set()
            if ended_ms == last_ms:
                at_last.add((stage, attempt))
            if (stage, attempt) in self._read:
                continue
            job = min(map(number_of, list_of(row[5])))
            spent_ns = number_of(row[3]) + number_of(row[4])
            found.append(EndedStage(stage, attempt, job, spent_ns))
        self._read = frozenset(at_last | (self._read if last_ms == self.last_ms else set()))
        self.last_ms = last_ms
        return tuple(found)


def first_job(stages: Sequence[EndedStage]) -> int:
    """The lowest number of a job of some stages."""
    return min(one.job for one in stages)


def by_group(stages: Sequence[EndedStage], jobs: Json) -> Mapping[str, int]:
    """CPU time of stages by the group of their job; without those of no group.

    Args:
        stages: have ended.
        jobs: the jobs from the first of the stages on, as they are stored.
    """
    groups: dict[int, str] = {}
    for job in list_of(jobs):
        info = object_of(object_of(job)["info"])
        if "jobGroup" in info:
            groups[number_of(info["jobId"])] = text_of(info["jobGroup"])
    found: defaultdict[str, int] = defaultdict(int)
    for one in stages:
        if one.job in groups:
            found[groups[one.job]] += one.cpu_ns
    return dict(found)


def _ms(time: Json) -> int:
    parsed = datetime.strptime(text_of(time), _TIME).replace(tzinfo=UTC)
    return round(parsed.timestamp() * 1_000)
