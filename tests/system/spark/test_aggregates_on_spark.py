"""Aggregate functions on Spark against the sequential reference, with random batch boundaries.

The same rows are run twice, in two orders and with two sets of batch boundaries. Both runs must
equal each other bit for bit, and the sequential reference.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from itertools import pairwise
from math import inf, isclose, isnan, nan
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual alias in Spark programs

from pipeline.ids import BoxName, StreamName
from pipeline.network.aggregates import Aggregation, Collector
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.windows import TumblingWindow
from pipeline.network.expressions import check_with
from pipeline.network.model import NOWHERE, Computed
from pipeline.network.scope import Scope, Source
from pipeline.network.types import Column, Columns, DecimalType, Scalar
from pipeline.spark.query import hidden
from pipeline.spark.query.boxes.aggregate import lower
from pipeline.spark.query.lowered import GroupCore, Project
from pipeline.spark.query.sql import any_failed
from tests.unit.planner.aggregating import Seen, aggregated, place_of_share
from tests.unit.planner.networks import expression

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

COLUMNS: Columns = (
    Column("g", Scalar.INT, nullable=False),
    Column("i", Scalar.INT, nullable=True),
    Column("l", Scalar.LONG, nullable=True),
    Column("d", Scalar.DOUBLE, nullable=True),
    Column("e", Scalar.DOUBLE, nullable=True),
    Column("f", Scalar.FLOAT, nullable=True),
    Column("m", DecimalType(12, 3), nullable=True),
    Column("w", DecimalType(28, 14), nullable=True),
    Column("t", Scalar.STRING, nullable=True),
    Column("b", Scalar.BOOLEAN, nullable=True),
)
CALLS = (
    *(f"{name}({column})" for name in ("sum", "avg") for column in "ildm"),
    *(
        f"{name}({column})"
        for name in ("min", "max", "count", "first", "last")
        for column in "ldemft"
    ),
    *(f"count(DISTINCT {column})" for column in "lemft"),
    *(
        f"{name}({column})"
        for name in ("stddev", "stddev_pop", "variance", "var_pop")
        for column in "ildmw"
    ),
    *(f"percentile({column}, {share})" for column in "lem" for share in ("0", "0.37", "1")),
    *(f"median({column})" for column in "lemf"),
    *(f"approx_percentile({column}, {share})" for column in "ldm" for share in ("0", "0.37", "1")),
    "approx_percentile(d, 0.9, 0.001)",
    *(f"{name}({x}, {y})" for name in ("min_by", "max_by") for x, y in ("tl", "ie", "te", "lt")),
    *(f"{name}(b)" for name in ("bool_and", "bool_or", "count_if", "first")),
    *(f"{name}(b) FILTER (WHERE l > 0)" for name in ("bool_and", "bool_or", "count_if")),
    "last(t) FILTER (WHERE l > 0)",
    "max_by(t, e) FILTER (WHERE l > 0)",
    "stddev(d) FILTER (WHERE l > 0)",
)
GROUPS = 12
BATCHES = 3
WAIT_S = 300
RELATIVE_ERROR_MAX = 1e-14
"""Maximum relative error of a variance or standard deviation."""


@dataclass(frozen=True, slots=True)
class InputRow:
    """A row: event time in ms, topic, partition and offset, and the values of the columns."""

    place: tuple[int, str, int, int]
    values: Mapping[str, Any]


def input_rows(random: Random) -> list[InputRow]:
    """Rows of groups without a value, with one, with close, distant and special values."""
    rows = []
    for offset in range(600):
        place = (random.randrange(5), random.choice("ab"), random.randrange(2), offset)
        group = 1 if offset == 0 else random.choice([0, *range(2, GROUPS)])
        rows.append(InputRow(place, {"g": group, **_values(random, group)}))
    return rows


def _values(random: Random, group: int) -> dict[str, Any]:
    if group == 0:
        return dict.fromkeys("ildefmwtb")
    near = group % 2 == 0
    middle = Random(group).uniform(-1, 1)
    spread = 1e-9 if near else 1.0
    number = middle + spread * random.uniform(-1, 1)
    scale = 10.0 ** (group - 2)
    values: dict[str, Any] = {
        "i": random.choice([-(2**31), 2**31 - 1, 5, 6]) if near else random.randrange(-9, 9),
        "l": 2**55 + random.randrange(9) if near else random.randrange(-(2**56), 2**56),
        "d": number * scale,
        "e": random.choice([0.0, -0.0, nan, inf, -inf, 1.5, -2.5]),
        "f": random.choice([0.0, -0.0, nan, 0.5, 1.5]),
        "m": Decimal(random.randrange(-(10**12) + 1, 10**12)).scaleb(-3),
        "w": (Decimal(middle).scaleb(14) + Decimal(random.randrange(-9, 9)).scaleb(-14)).quantize(
            Decimal(1).scaleb(-14), context=Context(prec=40)
        ),
        "t": random.choice(["", "x", "y", "ä"]),
        "b": _truth(random, group),
    }
    missing = 0.1 if group > 1 else 0.0
    return {name: None if random.random() < missing else v for name, v in values.items()}


def _truth(random: Random, group: int) -> bool:
    """True in all rows of some groups, false in all of others, mixed in the rest."""
    return random.random() < {0: 1.0, 1: 0.0}.get(group % 4, 0.5)


def aggregate() -> tuple[Aggregate, dict[str, Aggregation]]:
    """A box with all aggregate calls, and the aggregation of each."""
    collector, names = Collector(Scope((Source(COLUMNS),))), dict[str, str]()
    for text in CALLS:
        checked = check_with(text, collector.walk(Scope(()), NOWHERE))
        assert checked.expression is not None, (text, checked.faults)
        (column,) = checked.expression.columns
        names[text] = column.name
    found = {aggregation.name: aggregation for aggregation in collector.found}
    box = Aggregate(
        BoxName("b"),
        StreamName("s"),
        TumblingWindow(60_000, 0),
        (Computed("g", expression("`g`", Scalar.INT, nullable=False)),),
        tuple(collector.found),
        (),
        columns=(),
        event_time_column=None,
    )
    return box, {text: found[name] for text, name in names.items()}


def streamed(
    spark: SparkSession, folder: Path, box: Aggregate, batches: Sequence[Sequence[InputRow]]
) -> dict[int, Row]:
    """The streaming query's result per group after all batches."""
    types = ", ".join(f"{c.name} {c.type}" for c in COLUMNS)
    schema = f"at bigint, topic string, partition int, offset bigint, {types}"
    for number, batch in enumerate(batches):
        plain = [(*row.place, *(row.values[c.name] for c in COLUMNS)) for row in batch]
        frame = spark.createDataFrame(plain, schema).coalesce(1)
        frame.write.mode("append").parquet(str(folder / "in" / f"part={number}"))
    lowered = lower(box)
    (before,), core = lowered.before, lowered.core
    assert isinstance(before, Project)
    assert isinstance(core, GroupCore)
    read = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    place = F.struct("topic", "partition", "offset", F.lit("only"))
    rows = read.parquet(str(folder / "in" / "*")).select(
        F.timestamp_millis("at").alias(hidden.EVENT_TIME),
        place.alias(hidden.POSITION),
        *(F.expr(sql).alias(name) for name, sql in before.columns),
    )
    counted = rows.groupBy("g").agg(*(F.expr(sql).alias(name) for name, sql in core.functions))
    name = f"counted_{folder.name}"
    query = (
        counted.writeStream.outputMode("complete")
        .format("memory")
        .queryName(name)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(WAIT_S)
    (after,) = lowered.after
    found = spark.table(name)
    assert found.where(any_failed(after) or "false").count() == 0
    return {row["g"]: row for row in found.collect()}


def cut(random: Random, rows: Sequence[InputRow]) -> list[list[InputRow]]:
    """The rows in random order, in batches of random size."""
    shuffled = random.sample(rows, len(rows))
    cuts = sorted(random.sample(range(1, len(rows)), BATCHES - 1))
    return [shuffled[a:b] for a, b in pairwise([0, *cuts, len(rows)])]


def counts(text: str, row: InputRow) -> bool:
    """Whether a row passes the FILTER of a call, if it has one."""
    return "FILTER" not in text or (row.values["l"] or 0) > 0


def expected(text: str, aggregation: Aggregation, rows: Sequence[InputRow]) -> Any:
    """The sequential reference's result of a call."""
    names = text.partition("(")[2].partition(")")[0].removeprefix("DISTINCT ").split(", ")
    by = names[1] if aggregation.by is not None else None
    seen = [
        Seen(row.place, row.values[names[0]], None if by is None else row.values[by])
        for row in rows
        if counts(text, row)
    ]
    if text.startswith("count_if"):
        return sum(one.value is True for one in seen)
    if aggregation.function != "approx_percentile":
        return aggregated(aggregation.function, seen, aggregation.parameters)
    values = [float(one.value) for one in seen if one.value is not None]
    return place_of_share(values, aggregation.parameters[0]) if values else None


def same(one: Any, other: Any) -> bool:
    """Bitwise equality, including the sign of zero and NaN."""
    return repr(one) == repr(other)


def fits(aggregation: Aggregation, found: Any, expected_value: Any) -> bool:
    """Whether a result equals the expected one, within the documented precision."""
    if found is None or expected_value is None:
        return found is expected_value
    if aggregation.function == "approx_percentile":
        return isclose(found, expected_value, rel_tol=float(aggregation.parameters[1]) * 1.0001)
    if aggregation.function.endswith(("_pop", "_samp")):
        return isclose(found, expected_value, rel_tol=RELATIVE_ERROR_MAX)
    return found == expected_value or (
        isinstance(found, float) and isnan(found) and isnan(expected_value)
    )


def test_results_equal_the_reference_for_any_batch_boundaries(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Row order and batch boundaries do not change a bit of the result."""
    random = Random(5)
    rows = input_rows(random)
    box, aggregations = aggregate()
    one, other = (
        streamed(spark, tmp_path / name, box, cut(random, rows)) for name in ("one", "other")
    )
    assert one.keys() == other.keys() == set(range(GROUPS))
    by_group = {g: [row for row in rows if row.values["g"] == g] for g in range(GROUPS)}
    wrong = [
        (text, group, one[group][a.name], other[group][a.name], expected_value)
        for text, a in aggregations.items()
        for group, members in by_group.items()
        for expected_value in (expected(text, a, members),)
        if not same(one[group][a.name], other[group][a.name])
        or not fits(a, one[group][a.name], expected_value)
    ]
    assert wrong == []
