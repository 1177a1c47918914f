"""Background jobs: one at a time, and no failure is lost."""

import threading
from collections.abc import Iterator

import pytest

from pipeline.errors import RetryError
from pipeline.spark.run.background_job import BackgroundJob

WITHIN_S = 10.0


@pytest.fixture
def job() -> Iterator[BackgroundJob]:
    """Closed at the end."""
    made = BackgroundJob("test")
    yield made
    made.close()


def test_a_job_runs_in_the_background_and_the_next_waits_for_it(job: BackgroundJob) -> None:
    """Never two at once, in the order in which they were started."""
    go, done = threading.Event(), list[str]()

    def first() -> None:
        assert go.wait(WITHIN_S)
        done.append("first")

    job.start(first)
    job.check()
    assert done == []
    go.set()
    job.start(lambda: done.append("second"))
    assert done[:1] == ["first"]
    job.wait()
    assert done == ["first", "second"]


def test_a_job_that_follows_is_not_waited_for(job: BackgroundJob) -> None:
    """It runs after the one before, whose error it has otherwise."""
    go, done = threading.Event(), list[str]()

    def first() -> None:
        assert go.wait(WITHIN_S)
        done.append("first")

    def fail() -> None:
        raise RetryError("the broker is away")

    job.follow(first)
    job.follow(lambda: done.append("second"))
    assert done == []
    go.set()
    job.wait()
    assert done == ["first", "second"]
    job.start(fail)
    job.follow(lambda: done.append("third"))
    with pytest.raises(RetryError, match="the broker is away"):
        job.wait()
    assert done == ["first", "second"]


def test_an_error_of_a_job_is_raised_by_each_later_call(
    job: BackgroundJob,
) -> None:
    """A batch that was not written must not be followed by another."""

    def fail() -> None:
        raise RetryError("the broker is away")

    job.start(fail)
    done: list[str] = []
    for ask in (job.wait, job.check, lambda: job.start(lambda: done.append("next"))):
        with pytest.raises(RetryError, match="the broker is away"):
            ask()
    assert done == []


def test_waiting_for_a_job_times_out(job: BackgroundJob) -> None:
    """A job that hangs is reported as such."""
    go = threading.Event()

    def hang() -> None:
        assert go.wait(WITHIN_S)

    job.start(hang)
    with pytest.raises(RetryError, match=r"more than 0\.01 s"):
        job.wait(0.01)
    go.set()
    job.wait()


def test_without_a_job_there_is_nothing_to_wait_for(job: BackgroundJob) -> None:
    """Nothing was started."""
    job.wait()
    job.check()


def test_any_error_of_a_job_is_translated(
    job: BackgroundJob,
) -> None:
    """The watcher of the query ends it then; a bug must not leave it running."""

    def fail() -> None:
        raise KeyError("offset")

    job.start(fail)
    for ask in (job.wait, job.check, lambda: job.start(lambda: None)):
        with pytest.raises(RetryError, match="failed unexpectedly: KeyError: 'offset'") as caught:
            ask()
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_timeout_error_of_a_job_is_no_timeout_of_waiting(job: BackgroundJob) -> None:
    """Python's own TimeoutError of a job is an error of the job."""

    def fail() -> None:
        raise TimeoutError("no answer")

    job.start(fail)
    with pytest.raises(RetryError, match="TimeoutError: no answer"):
        job.wait()
