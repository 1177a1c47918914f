from collections.abc import Sequence
from zlib import crc32

import pyarrow as pa

from pipeline.ids import Millis
from pipeline.spark.batch.results import ROWS_AT_ONCE, Results
from pipeline.spark.query.failed_results import ROW_COLUMNS, FailedResult, FailedRow


def results(
    *rows: tuple[bytes | None, bytes, int, str | None],
    ids: tuple[bytes, ...] = (),
    of_rows: Sequence[tuple[str | None, bytes | None, bool]] = (),
) -> Results:
    """Rows of (key, value, time, reason), with optional ids and row descriptions."""
    keys, values, times, reasons = (list(c) for c in zip(*rows, strict=True)) if rows else [[]] * 4
    descriptions = [list(column) for column in zip(*of_rows, strict=True)]
    kinds = (pa.string(), pa.binary(), pa.bool_())
    return Results(
        pa.table(
            {
                "key": pa.array(keys, pa.binary()),
                "value": pa.array(values, pa.binary()),
                "timestamp_ms": pa.array(times, pa.int64()),
                "partition": pa.array([-1] * len(rows), pa.int32()),
                "reason": pa.array(reasons, pa.string()),
                **({"id": pa.array(ids, pa.binary())} if ids else {}),
                **{
                    n: pa.array(c, of)
                    for n, c, of in zip(ROW_COLUMNS, descriptions, kinds, strict=False)
                },
            }
        )
    )


def test_records_are_in_order_also_when_there_are_many() -> None:
    """They are created in chunks; none is lost between two chunks."""
    count = 2 * ROWS_AT_ONCE + 1
    found = list(results(*((None, b"%d" % i, i, None) for i in range(count))).records(1))
    assert found == [(None, b"%d" % i, i, 0) for i in range(count)]


def test_the_checksum_is_that_of_the_results_in_any_order() -> None:
    """Equal ones count as often as they are there; what is no result does not."""
    one, two = (None, b"one", 1, None), (None, b"two", 2, None)
    found = results(one, two, two, (None, b"{}", 3, "why"))
    assert found.checksum == results(two, one, two).checksum
    others = (results(), results(one, two), results(one, one, two), results(one, two, one, two))
    assert found.checksum not in {other.checksum for other in others}
    many = results(*((None, b"%d" % n, n, None) for n in range(2 * ROWS_AT_ONCE + 1)))
    assert many.checksum == sum(crc32(b"%d" % n) for n in range(2 * ROWS_AT_ONCE + 1))


def test_failed_results_are_separate() -> None:
    """With their reasons and inputs."""
    mixed = results((b"k", b"fine", 1, None), (None, b"inputs", 2, "evaluation_failed:1"))
    assert list(mixed.records(1)) == [(b"k", b"fine", 1, 0)]
    assert list(mixed.failed()) == [FailedResult("evaluation_failed:1", b"inputs", Millis(2))]
    assert list(results((b"k", b"fine", 1, None)).failed()) == []


def test_a_failed_result_names_its_row() -> None:
    """With its match, and the first place of a redriven record."""
    own = '{"path":"left","partition":1,"offset":2,"attempt":1}'
    again = '{"path":"left","partition":1,"offset":2,"attempt":3,"first":"in/0/7"}'
    bad, good = (None, b"v", 1, "failed"), (None, b"v", 1, None)
    descriptions = [(own, b"said", False), (None, None, False), (again, None, True)]
    found = results(bad, good, bad, of_rows=descriptions)
    assert [one.row for one in found.failed()] == [
        FailedRow("left", 1, 2, 1, None, b"said"),
        FailedRow("left", 1, 2, 3, "in/0/7", None),
    ]


def test_whether_a_row_has_its_former_match() -> None:
    """In other fragments none has."""
    good = (None, b"v", 1, None)
    own, absent = (None, None, False), (None, None, True)
    assert results(good, good, of_rows=[own, absent]).answered
    assert not results(good, of_rows=[own]).answered
    assert not results(good).answered
    assert not results().answered


def test_rows_that_are_no_results_can_be_excluded() -> None:
    """Before times are compared: they have one as well."""
    mixed = results((b"k", b"fine", 5, None), (None, b"", 2, "no_result"))
    assert mixed.computed().earliest_ms == 5
    assert mixed.computed().computed().table.num_rows == 1


def test_ids_are_returned_with_the_records() -> None:
    """Of results that have them; failed ones have none."""
    mixed = results((b"k", b"x", 1, None), (None, b"y", 2, "evaluation_failed:1"), ids=(b"1", b"2"))
    assert list(mixed.identified(1)) == [(b"k", b"x", 1, 0, b"1")]
    assert list(results((b"k", b"x", 1, None)).identified(1)) == [(b"k", b"x", 1, 0, None)]


def test_times() -> None:
    """The least is computed without creating records."""
    three = results((None, b"a", 5, None), (None, b"b", 3, None), (None, b"c", 4, None))
    assert three.earliest_ms == 3
    assert results().earliest_ms is None


def test_results_can_be_sorted_by_their_times() -> None:
    """A batch that closes many windows of a group has them in no defined order."""
    mixed = results((b"k", b"2", 2, None), (b"k", b"1", 1, None), (b"j", b"3", 3, None))
    assert [record[1] for record in mixed.by_time().records(1)] == [b"1", b"2", b"3"]


def test_a_result_without_a_key_is_partitioned_by_its_value() -> None:
    """Not all of them into one partition, and each always into the same."""
    rows = results(*((None, b"%d" % i, i, None) for i in range(40)))
    found = {value: partition for _, value, _, partition in rows.records(4)}
    keyed = results(*((b"%d" % i, b"", i, None) for i in range(40)))
    assert found == {key: partition for key, _, _, partition in keyed.records(4)}
    assert set(found.values()) == {0, 1, 2, 3}


def test_results_up_to_a_time_are_left_out() -> None:
    """But for those of rows that were sent again with the values of their table."""
    rows = [(None, b"a", 4, None), (None, b"b", 5, None), (None, b"c", 6, None)]
    assert results(*rows).above(None).table.num_rows == 3
    assert results(*rows).above(Millis(5)).table.column("value").to_pylist() == [b"c"]
    of_rows = [("r", None, True), (None, None, False), (None, None, False)]
    kept = results(*rows, of_rows=of_rows).above(Millis(5))
    assert kept.table.column("value").to_pylist() == [b"a", b"c"]


def test_the_size_is_that_of_keys_and_values_of_results() -> None:
    """Without what is no result."""
    assert results().size_bytes == 0
    found = results((b"key", b"value", 1, None), (None, b"12", 2, None), (None, b"{}", 3, "why"))
    assert found.size_bytes == 3 + 5 + 2
