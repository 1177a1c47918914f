"""Spark's reader of offsets, as replaced; what Java does with it is in the conformance tests."""

import gc
import weakref
from typing import Any, cast

from pipeline.spark.run.steered_query import SteeredReader


class JavaMap:
    """An object of Java, as Python refers to it."""


class OwnReader:
    """Spark's reader of offsets; every answer is a new object."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def fetchEarliestOffsets(self, *arguments: Any) -> JavaMap:  # noqa: N802 - Java's name
        """The oldest offsets."""
        self.asked.append(arguments)
        return JavaMap()


def test_an_answer_lives_until_the_next_one_of_its_method() -> None:
    """Java looks it up after Python has returned it."""
    own = OwnReader()
    reader = SteeredReader(own, cast("Any", None), cast("Any", None), 0)
    first = weakref.ref(reader.fetchEarliestOffsets(7))
    gc.collect()
    assert first() is not None
    second = weakref.ref(reader.fetchEarliestOffsets())
    gc.collect()
    assert (first(), own.asked) == (None, [(7,), ()])
    assert second() is not None
    reader.release()
    gc.collect()
    assert second() is None
