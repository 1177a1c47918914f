"""The query of a rebuild that waits for its lane, between two threads."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from pipeline.errors import MedusaError, RetryError
from pipeline.ids import Millis
from pipeline.spark.run.lasting_query import LastingQuery
from pipeline.spark.run.query_runner import Query, RunningQuery, StoppingError
from pipeline.spark.run.steered_query import Answer, Plan
from pipeline.system_clock import SystemClock

WITHIN_S = 30.0
BATCHES = [Answer({}, Millis(1)), Answer({}, Millis(2))]
QUERY = Query("a query", cast("Any", None), cast("Any", None), Path(), lambda *_: None)


@dataclass
class FakeQuery:
    """Asks for batches until there is none, as Spark does; it may be taken over meanwhile."""

    plan: Callable[[], Plan]
    fails: MedusaError | StoppingError | None = None
    done: list[Answer] = field(default_factory=list)
    taken_over: threading.Event = field(default_factory=threading.Event)
    refused: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Run to the end of the plan."""
        try:
            while (answer := self.plan()()) is not None:
                self.done.append(answer)
                if self.fails is not None:
                    raise self.fails
        finally:
            self.ended.set()

    def refuse_takeover(self) -> None:
        """Refuse it."""
        self.refused = not self.taken_over.is_set()


@dataclass
class Scene:
    """A lasting query over a fake one."""

    fails: MedusaError | StoppingError | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Make both."""
        answers = list(BATCHES)

        def begin(_: Query, __: threading.Event) -> RunningQuery:
            return cast("RunningQuery", self.fake)

        def plan() -> Answer | None:
            return answers.pop(0) if answers else None

        self.lasting = LastingQuery(plan, SystemClock(), self.stop, begin)
        self.fake = FakeQuery(lambda: self.lasting.answer, self.fails)


def test_it_waits_after_its_last_planned_batch() -> None:
    """Until it is taken over: then the plan of the other thread counts."""
    scene = Scene()
    scene.lasting.run(QUERY)
    assert scene.fake.done == BATCHES
    assert not scene.fake.ended.is_set()
    assert cast("Any", scene.lasting.query) is scene.fake
    scene.fake.taken_over.set()
    assert scene.fake.ended.wait(WITHIN_S)
    assert not scene.fake.refused
    assert scene.lasting.end()


@pytest.mark.parametrize("how", ["release", "end", "stop"])
def test_it_ends_if_no_lane_takes_it_over(how: str) -> None:
    """The start of the lane has failed, or the lane is stopped: later it is refused."""
    scene = Scene()
    scene.lasting.run(QUERY)
    {"release": scene.lasting.release, "end": scene.lasting.end, "stop": scene.stop.set}[how]()
    assert scene.fake.ended.wait(WITHIN_S)
    assert scene.fake.refused
    assert scene.lasting.end()
    with pytest.raises(RetryError, match="has ended before it was taken over"):
        _ = scene.lasting.query


@pytest.mark.parametrize("error", [RetryError("not now"), StoppingError()])
def test_an_error_before_is_that_of_the_rebuild(error: MedusaError | StoppingError) -> None:
    """The query has ended by then, so its folder is free."""
    scene = Scene(error)
    with pytest.raises(type(error)) as caught:
        scene.lasting.run(QUERY)
    assert caught.value is error
    assert scene.fake.done == BATCHES[:1]
    assert scene.fake.ended.is_set()
