from collections.abc import Sequence
from typing import Any

import pytest

from pipeline.errors import InputError
from pipeline.network.types import Column, Columns, Scalar
from pipeline.operations.proposals.measurements import (
    Disorder,
    Measurements,
    SampledRecord,
    measure,
)

NOW_MS = 1_767_225_600_000
SYMBOL = Column("symbol", Scalar.STRING, nullable=False)
AT = Column("at", Scalar.TIMESTAMP, nullable=True)


def _seen(
    columns: Columns, *values: Any, partition: int = 0, timestamp_ms: int = NOW_MS, key: Any = None
) -> SampledRecord:
    row = {column.name: value for column, value in zip(columns, values, strict=True)}
    return SampledRecord(partition, timestamp_ms, key, row)


def _timed(times_s: Sequence[float], partition: int = 0) -> list[SampledRecord]:
    return [_seen((AT,), int(NOW_MS * 1000 + t * 1_000_000), partition=partition) for t in times_s]


def _found(
    columns: Columns, seen: Sequence[SampledRecord], event_time: str | None = None
) -> Measurements:
    return measure(columns, seen, event_time)


def test_disorder_is_measured_within_a_partition() -> None:
    """The distance to the largest earlier time of the same partition."""
    seen = _timed([0, 10, 7, 12, 4]) + _timed([-100, -99], partition=1)
    assert _found((AT,), seen).disorder == Disorder(7, 8_000, 8_000)


def test_one_record_in_a_thousand_may_be_later() -> None:
    """So that a single record that is years late does not decide."""
    seen = _timed([*range(1_999), 1_990, 1_990, -1_000_000])
    found = _found((AT,), seen).disorder
    assert found is not None
    assert (found.records, found.nearly_all_ms) == (2_002, 8_000)
    assert found.largest_ms == 1_001_998_000


def test_an_outlier_decides_nothing() -> None:
    """A time in the next century makes no later record late, nor does a text that is no time."""
    times = [_at(n) for n in range(2_000)]
    times[10] = times[10] + 80 * 365 * 86_400_000_000
    found = _found((AT,), [_seen((AT,), time) for time in times])
    assert found.disorder == Disorder(1_999, 0, 0)
    assert found.ahead_ms == 1_998_000
    written = ["2025-12-31T00:00:00Z"] * 1_999 + ["soon"]
    texts = _found((TEXT,), [_seen((TEXT,), text) for text in written])
    assert texts.event_time.missing == 1
    assert texts.disorder == Disorder(1_999, 0, 0)
    with pytest.raises(InputError):
        _found((TEXT,), [_seen((TEXT,), text) for text in ("2025-12-31T00:00:00Z", "soon")])


def _at(second: int) -> int:
    return NOW_MS * 1_000 + second * 1_000_000


def test_the_longest_gap_of_a_partition() -> None:
    """By Kafka's timestamps; records without one are not measured."""
    times = [(0, 0), (0, 4_000), (1, 9_000), (0, 5_000), (1, 9_500)]
    seen = [_seen((AT,), None, partition=p, timestamp_ms=t) for p, t in times]
    assert _found((AT,), seen).gap_ms == 4_000
    none = [_seen((AT,), None, timestamp_ms=-1)] * 3
    assert _found((AT,), none).gap_ms is None


NUMBER = Column("number", Scalar.LONG, nullable=False)
TEXT = Column("text", Scalar.STRING, nullable=False)


@pytest.mark.parametrize(
    ("column", "value", "expression"),
    [
        (NUMBER, NOW_MS, "timestamp_millis(number)"),
        (NUMBER, NOW_MS // 1000, "timestamp_seconds(number)"),
        (NUMBER, NOW_MS * 1000, "timestamp_micros(number)"),
        (TEXT, "2025-12-31T23:59:59.5Z", "to_timestamp(text)"),
        (TEXT, "2025-12-31 23:59:59", "to_timestamp(text)"),
        (Column("timestamp", Scalar.TIMESTAMP, nullable=False), NOW_MS * 1000, "timestamp"),
        (Column("select", Scalar.TIMESTAMP, nullable=False), NOW_MS * 1000, "`select`"),
    ],
)
def test_times_are_found_by_their_values(column: Column, value: Any, expression: str) -> None:
    """A number by its size, a text by its format; a name that is a word of SQL is quoted."""
    columns = (SYMBOL, column)
    found = _found(columns, [_seen(columns, "a", value)] * 3)
    assert found.event_time.expression == expression
    assert found.disorder == Disorder(3, 0, 0)


def test_the_best_time_is_plausible_complete_and_of_a_typical_name() -> None:
    """The others follow in order: complete, then incomplete, then implausible as a birthday."""
    names = ("born", "sold_at", "patched", "event_time")
    columns = tuple(Column(name, Scalar.TIMESTAMP, nullable=True) for name in names)
    now = NOW_MS * 1000
    seen = [_seen(columns, -now, now, now, now)] * 2 + [_seen(columns, 0, None, now, now)]
    found = _found(columns, seen)
    assert found.event_time.expression == "event_time"
    assert found.others == ("patched", "sold_at", "born")
    assert found.event_time.away_ms == 0


def test_a_schema_without_a_time_needs_an_expression() -> None:
    """The error lists the columns; an expression is checked, and measured if possible."""
    columns = (SYMBOL, NUMBER)
    seen = [_seen(columns, "a", 7)]
    with pytest.raises(InputError) as caught:
        _found(columns, seen)
    assert "--event-time EXPRESSION" in caught.value.hint
    assert "symbol STRING, number BIGINT" in caught.value.hint
    given = _found(columns, seen, "timestamp_seconds(number * 1000)")
    assert given.disorder == Disorder(1, 0, 0)
    with pytest.raises(InputError, match="there is no column numbr"):
        _found(columns, seen, "timestamp_seconds(numbr)")
    left_to_spark = _found(columns, seen, "to_timestamp(symbol, 'yyyy')")
    assert left_to_spark.disorder is None


def test_the_key_is_a_column_that_equals_it_in_every_record() -> None:
    """As text, or as the only field of a record; without any exception."""
    columns = (SYMBOL, NUMBER, AT)
    keyed = [_seen(columns, "a", 1, None, key="a"), _seen(columns, "b", 2, None, key={"s": "b"})]
    assert _found(columns, keyed).key == "symbol"
    numbered = [_seen(columns, "a", 1, None, key="1"), _seen(columns, "b", 2, None, key=2)]
    assert _found(columns, numbered).key == "number"
    assert _found(columns, [*keyed, _seen(columns, "c", 3, None, key="x")]).key is None
    assert _found(columns, [_seen(columns, "a", 1, None)]).key is None


def test_what_cannot_be_decoded_is_counted_with_the_first_reason() -> None:
    """A record without a value is no error."""
    seen = [
        SampledRecord(0, NOW_MS, None, None, "no zero byte"),
        SampledRecord(0, NOW_MS, None, None),
    ]
    found = _found((AT,), seen)
    assert (found.records, found.undecoded, found.first_problem) == (2, 1, "no zero byte")
