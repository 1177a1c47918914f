"""A running query is taken over by another thread, while it waits for the plan of a batch."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession

from brokers.embedded.stack import EmbeddedStack
from pipeline.errors import MedusaError, RetryError
from pipeline.ids import Offset
from pipeline.markers.positions import Positions
from pipeline.spark.batch.facts import Engine
from pipeline.spark.query.emit import emit
from pipeline.spark.query.readers import STREAM_OPTIONS, KafkaReader, read_options, starting_at
from pipeline.spark.run.planned_batch import plan_first_batch
from pipeline.spark.run.query_runner import Driver, Query, RunningQuery, StoppingError
from pipeline.spark.run.steered_query import Answer, Steering
from tests.conftest import WaitFor
from tests.system.steered.runs import NOW, filled

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]
WITHIN_S = 60.0


@dataclass
class Party:
    """What runs the query for a time: plans its batches, and notes those that it handles."""

    answers: list[Answer] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    waits: threading.Event = field(default_factory=threading.Event)
    batches: list[int] = field(default_factory=list)
    raises: MedusaError | None = None
    error: Exception | None = None
    thread: threading.Thread | None = None

    def plan(self) -> Answer | None:
        """The next answer; without one, wait for the release."""
        if self.answers:
            return self.answers.pop(0)
        self.waits.set()
        assert self.released.wait(WITHIN_S)
        return None

    def write(self, rows: DataFrame, batch: int, _: Engine) -> None:
        """Handle a batch."""
        rows.toArrow()
        if self.raises is not None:
            raise self.raises
        self.batches.append(batch)

    @property
    def driver(self) -> Driver:
        """To take the query over."""
        return Driver(self.write, lambda _: None, self.released.set, self.stop)

    def start(self, run: Callable[[], None]) -> None:
        """Run on a thread of its own."""

        def target() -> None:
            try:
                run()
            except (MedusaError, StoppingError) as error:
                self.error = error

        self.thread = threading.Thread(target=target, daemon=True)
        self.thread.start()

    def join(self) -> None:
        """Wait for the end of its thread."""
        assert self.thread is not None
        self.thread.join(WITHIN_S)
        assert not self.thread.is_alive()


@dataclass(frozen=True)
class Scene:
    """A query that has executed one batch for its first party, and waits."""

    query: RunningQuery
    first: Party
    end: Positions

    def taken_over(self, second: Party) -> None:
        """Let another party take it over, as the follower and the lane do."""
        second.start(lambda: self.query.take_over(second.driver, second.plan))
        assert self.query.taken_over.wait(WITHIN_S)
        self.first.released.set()
        self.first.join()


@pytest.fixture
def scene(
    node_session: SparkSession,
    embedded_stack: EmbeddedStack,
    tmp_path: Path,
    wait_for: WaitFor,
    request: pytest.FixtureRequest,
) -> Scene:
    """Half of the records are read."""
    bootstrap, name = embedded_stack.settings.kafka_bootstrap_servers, request.node.name
    case = filled("tumbling", 1, name, Random(1), bootstrap)
    begin = dict.fromkeys(case.times, Offset(0))
    half = {at: Offset(len(times) // 2) for at, times in case.times.items()}
    folder, first = tmp_path / "checkpoint", Party()
    folder.mkdir()
    plan_first_batch(node_session, folder, case.lowered, half, None, NOW)
    options = {**read_options(bootstrap), **STREAM_OPTIONS}
    query = Query(
        name=name,
        rows=emit(case.lowered, KafkaReader(node_session, options, starting_at(begin))),
        lowered=case.lowered,
        folder=folder,
        write=first.write,
        steering=Steering(node_session, first.plan),
        end=first.released.set,
    )
    running = RunningQuery(query, first.stop)
    first.start(running.run)
    wait_for(first.waits.is_set, "a query that waits", within_s=120.0)
    end = {at: Offset(len(times)) for at, times in case.times.items()}
    return Scene(running, first, end)


def test_the_next_batch_is_that_of_the_second_party(scene: Scene, wait_for: WaitFor) -> None:
    """The question that waited is answered by its plan; a stop ends the query."""
    second = Party([Answer(scene.end, None)])
    scene.taken_over(second)
    wait_for(lambda: second.batches == [1], "its batch")
    assert (scene.first.batches, scene.first.error) == ([0], None)
    wait_for(second.waits.is_set, "its next question")
    second.stop.set()
    second.join()
    assert isinstance(second.error, StoppingError)


def test_an_error_is_that_of_the_second_party(scene: Scene) -> None:
    """It handles the batch, so it has the error; the first one has ended before."""
    second = Party([Answer(scene.end, None)], raises=RetryError("not written"))
    scene.taken_over(second)
    second.join()
    assert second.error is second.raises
    assert (scene.first.error, second.batches) == (None, [])


def test_a_plan_that_ends_ends_the_query(scene: Scene) -> None:
    """As that of a lane which is to stop."""
    second = Party()
    second.released.set()
    scene.taken_over(second)
    second.join()
    assert second.error is None


def test_a_query_that_ends_is_not_taken_over(scene: Scene) -> None:
    """It was refused, or has ended by a stop: the lane is started again."""
    scene.query.refuse_takeover()
    second = Party()
    second.start(lambda: scene.query.take_over(second.driver, second.plan))
    second.join()
    assert isinstance(second.error, RetryError)
    scene.first.stop.set()
    scene.first.join()
    assert isinstance(scene.first.error, StoppingError)
    third = Party()
    third.start(lambda: scene.query.take_over(third.driver, third.plan))
    third.join()
    assert isinstance(third.error, RetryError)
