"""Background worker for requests to servers."""

import threading
from functools import partial

import pytest

from pipeline.agent.background import Background
from pipeline.errors import FencedError, UnavailableError
from tests.conftest import WaitFor


def test_a_queued_job_is_replaced_by_a_newer_one_with_its_key(wait_for: WaitFor) -> None:
    """Jobs with other keys run in order."""
    work, done, go = Background("work"), list[str](), threading.Event()

    def wait() -> None:
        assert go.wait(10)

    work.put("first", wait)
    for number in range(100):
        work.put("status", partial(done.append, f"status {number}"))
    work.put("other", partial(done.append, "other"))
    go.set()
    wait_for(lambda: len(done) == 2, "the jobs are done")
    assert done == ["status 99", "other"]
    work.end(10)


def test_a_replaced_job_keeps_its_place_in_the_queue(wait_for: WaitFor) -> None:
    """Otherwise the last ones would starve while servers are slower than the jobs arrive."""
    work, done, go = Background("work"), list[str](), threading.Event()

    def wait() -> None:
        assert go.wait(10)

    work.put("first", wait)
    for turn in (1, 2):
        for key in ("a", "b"):
            work.put(key, partial(done.append, f"{key}{turn}"))
    work.put("a", partial(done.append, "a3"))
    go.set()
    wait_for(lambda: len(done) == 2, "the jobs are done")
    assert done == ["a3", "b2"]
    work.end(10)


@pytest.mark.parametrize(
    "error", [UnavailableError("no answer"), FencedError("another"), ValueError("a bug")]
)
def test_a_failing_job_does_not_prevent_later_ones(error: Exception, wait_for: WaitFor) -> None:
    """Whatever it raises."""
    work, done = Background("work"), list[str]()

    def fail() -> None:
        raise error

    work.put(1, fail)
    work.put(2, partial(done.append, "done"))
    wait_for(lambda: done, "the other job is done")
    work.end(10)


def test_queued_jobs_run_before_the_worker_ends() -> None:
    """The last status of a node that stops is reported."""
    work, done = Background("work"), list[int]()
    for number in range(10):
        work.put(number, partial(done.append, number))
    work.end(10)
    assert done == list(range(10))
