"""Spark reads beyond the planned end of a batch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pipeline.spark.run.steered_query import Answer
from tests.histories import engine
from tests.histories.replaced import replaced

KINDS = "restart"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """A batch ends one offset later where the planner knows that there are more."""
    real = engine.Steering

    def exceeding(spark: object, plan: Callable[[], Answer]) -> engine.Steering:
        planner: Any = plan.__self__.planner  # type: ignore[attr-defined]

        def exceeded() -> Answer:
            answer, known = plan(), planner._ends.by_topic
            there = {at: known.get(at.topic, {}).get(at.partition, 0) for at in answer.end}
            end = {at: max(end, min(end + 1, there[at])) for at, end in answer.end.items()}
            return replace(answer, end=end)

        return real(spark, exceeded)

    with replaced(engine, "Steering", exceeding):
        yield
