"""Takeover of a query that has ended while it waited."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipeline.errors import RetryError
from pipeline.spark.run import query_runner
from pipeline.spark.run.query_runner import Driver, Query, RunningQuery, StoppingError


@pytest.mark.parametrize(("stopped", "error"), [(False, RetryError), (True, StoppingError)])
def test_a_query_that_has_ended_is_not_taken_over(
    monkeypatch: pytest.MonkeyPatch, *, stopped: bool, error: type[Exception]
) -> None:
    """If the lane is to stop, that has ended it: no failure."""
    monkeypatch.setattr(query_runner, "CallbackConnection", lambda _: None)
    rows, stop = SimpleNamespace(sparkSession=None), threading.Event()
    query = Query("a query", cast("Any", rows), cast("Any", None), Path(), lambda *_: None)
    running = RunningQuery(query, stop)
    running.refuse_takeover()
    if stopped:
        stop.set()
    driver = Driver(lambda *_: None, lambda _: None, lambda: None, stop)
    with pytest.raises(error):
        running.take_over(driver, lambda: None)
