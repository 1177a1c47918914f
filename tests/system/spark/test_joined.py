"""Pairs of a join around the bounds of its event-time interval."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from pyspark.sql import DataFrame, SparkSession

from pipeline.network.boxes.sides import How
from pipeline.spark.query import hidden
from pipeline.spark.query.emitting.joined import COPIES, SPAN_LEAST_MS, matched
from pipeline.spark.query.lowered import JoinCore

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]
_ORIGIN = datetime(1970, 1, 1, tzinfo=UTC)
_BOUNDS_MS = ((-50, 150), (0, 0), (-700, -200), (0, 3_000))
Row = tuple[str, int]
"""A key, and event time in µs."""


def _frame(spark: SparkSession, rows: list[Row]) -> DataFrame:
    times = [(key, us, _ORIGIN + timedelta(microseconds=us)) for key, us in rows]
    return spark.createDataFrame(times, f"sensor string, us long, {hidden.EVENT_TIME} timestamp")


def _rows(lower_ms: int, upper_ms: int) -> list[Row]:
    """Rows of two keys at the bounds, and a microsecond on either side of each."""
    span_ms = max(COPIES * (upper_ms - lower_ms), SPAN_LEAST_MS)
    edges = (1_760_000_000_000 // span_ms * span_ms, 0)
    at_ms = sorted({edge + add for edge, add in product(edges, (0, lower_ms, upper_ms))})
    return [(key, 1_000 * ms + add) for key, ms, add in product("ab", at_ms, (-1, 0, 1))]


@pytest.mark.parametrize("how", list(How))
@pytest.mark.parametrize(("lower_ms", "upper_ms"), _BOUNDS_MS)
def test_each_pair_within_the_bound_is_emitted_once(
    spark: SparkSession, how: How, lower_ms: int, upper_ms: int
) -> None:
    """Also each row without a partner, whichever side has duplicates."""
    rows = _rows(lower_ms, upper_ms)
    core = JoinCore((("sensor", "sensor"),), lower_ms, upper_ms, how)
    pairs = [
        (left, right)
        for left, right in product(rows, rows)
        if left[0] == right[0] and 1_000 * lower_ms <= left[1] - right[1] <= 1_000 * upper_ms
    ]
    paired_left, paired_right = {left for left, _ in pairs}, {right for _, right in pairs}
    expected: list[tuple[str | int | None, ...]] = [(*left, *right) for left, right in pairs]
    if how is not How.INNER:
        expected += [(*left, None, None) for left in rows if left not in paired_left]
    if how is How.FULL:
        expected += [(None, None, *right) for right in rows if right not in paired_right]

    found = matched(_frame(spark, rows), _frame(spark, rows), core)
    assert len(found.columns) == 2 * 3
    names = [f"{side}.{name}" for side in ("left", "right") for name in ("sensor", "us")]
    assert Counter(map(tuple, found.select(*names).collect())) == Counter(expected)
