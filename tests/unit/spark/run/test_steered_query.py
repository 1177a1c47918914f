"""Spark's reader of offsets, as replaced; what Java does with it is in the conformance tests."""

import contextlib
import gc
import json
import weakref
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipeline.errors import BrokenInvariantError
from pipeline.ids import Offset, StreamName, TopicName
from pipeline.markers.positions import InputPartition
from pipeline.spark.run import steered_query
from pipeline.spark.run.steered_query import Answer, SteeredReader, Steering


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


def test_a_defect_in_the_question_stops_the_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark would report it as an error of the query, which may then count as a damaged file."""
    quiet = contextlib.nullcontext()
    monkeypatch.setattr(steered_query, "end_not_logged", lambda _query, _spark: quiet)

    def plan() -> Answer | None:
        empty: dict[int, Answer] = {}
        return empty[7]

    steering = Steering(cast("Any", None), plan)
    engine = cast("Any", type("AnEngine", (), {"query": None}))
    with pytest.raises(BrokenInvariantError, match="cannot be planned: KeyError: 7"):
        steering.ends(engine, 0)
    assert isinstance(steering.raised, BrokenInvariantError)


class Offsets:
    """Spark's translation of offsets: to text and back."""

    @staticmethod
    def partitionOffsets(found: object) -> object:  # noqa: N802 - Java's name
        """A map from text, text from a map."""
        return json.loads(found) if isinstance(found, str) else json.dumps(found)


class Ranges(OwnReader):
    """Gives back what it is asked."""

    def getOffsetRangesFromResolvedOffsets(self, begin: Any, end: Any, lost: Any) -> Any:  # noqa: N802
        """The ranges."""
        return begin, end, lost


def test_a_batch_begins_where_its_plan_says() -> None:
    """Other partitions where the last one ended; the next batch goes on."""
    jvm = SimpleNamespace()
    jvm.org = jvm.apache = jvm.spark = jvm.sql = jvm.kafka010 = jvm
    jvm.JsonUtils = Offsets
    spark = SimpleNamespace(sparkContext=SimpleNamespace(_jvm=jvm))
    engine = cast("Any", SimpleNamespace(lowered=SimpleNamespace(leaves=("s", "t"))))
    answers = [
        Answer({}, None, begin={InputPartition(StreamName("s"), TopicName("a"), 1): Offset(7)}),
        Answer({}, None),
    ]
    steering = Steering(cast("Any", spark), lambda: answers.pop(0))
    reader, other = (SteeredReader(Ranges(), engine, steering, leaf) for leaf in (0, 1))
    read = {"a": {"0": 1, "1": 2}, "b": {"0": 3}}
    steering._next(engine)
    found = reader.getOffsetRangesFromResolvedOffsets(read, "end", "lost")
    assert found == ({"a": {"0": 1, "1": 7}, "b": {"0": 3}}, "end", "lost")
    assert other.getOffsetRangesFromResolvedOffsets(read, "end", "lost")[0] == read
    steering._is_due = False
    steering._next(engine)
    assert reader.getOffsetRangesFromResolvedOffsets(read, "end", "lost")[0] == read
