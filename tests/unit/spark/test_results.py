import pyarrow as pa

from pipeline.spark.results import ROWS_AT_ONCE, Results


def results(
    *rows: tuple[bytes | None, bytes, int, str | None], ids: tuple[bytes, ...] = ()
) -> Results:
    """Rows of (key, value, time, reason), with ids if they have some."""
    keys, values, times, reasons = (list(c) for c in zip(*rows, strict=True)) if rows else [[]] * 4
    return Results(
        pa.table(
            {
                "key": pa.array(keys, pa.binary()),
                "value": pa.array(values, pa.binary()),
                "timestamp_ms": pa.array(times, pa.int64()),
                "partition": pa.array([-1] * len(rows), pa.int32()),
                "reason": pa.array(reasons, pa.string()),
                **({"id": pa.array(ids, pa.binary())} if ids else {}),
            }
        )
    )


def test_records_come_in_order_also_when_there_are_many() -> None:
    """They are made bit by bit; none is lost at the seams."""
    count = 2 * ROWS_AT_ONCE + 1
    found = list(results(*((None, b"%d" % i, i, None) for i in range(count))).records(1))
    assert found == [(None, b"%d" % i, i, 0) for i in range(count)]


def test_what_failed_is_kept_apart() -> None:
    """With its reason and what it was computed from."""
    mixed = results((b"k", b"fine", 1, None), (None, b"inputs", 2, "evaluation_failed:1"))
    assert list(mixed.records(1)) == [(b"k", b"fine", 1, 0)]
    assert list(mixed.failed()) == [("evaluation_failed:1", b"inputs", 2)]
    assert list(results((b"k", b"fine", 1, None)).failed()) == []


def test_what_is_no_result_can_be_left_out() -> None:
    """Before times are looked at: it has one as well."""
    mixed = results((b"k", b"fine", 5, None), (None, b"", 2, "no_result"))
    assert mixed.computed().earliest_ms == 5
    assert mixed.computed().computed().table.num_rows == 1


def test_ids_come_with_the_records() -> None:
    """Of results that have them; what failed has none to tell."""
    mixed = results((b"k", b"x", 1, None), (None, b"y", 2, "evaluation_failed:1"), ids=(b"1", b"2"))
    assert list(mixed.identified(1)) == [(b"k", b"x", 1, 0, b"1")]
    assert list(results((b"k", b"x", 1, None)).identified(1)) == [(b"k", b"x", 1, 0, None)]


def test_times() -> None:
    """The least is known without making records."""
    three = results((None, b"a", 5, None), (None, b"b", 3, None), (None, b"c", 4, None))
    assert three.earliest_ms == 3
    assert results().earliest_ms is None


def test_results_can_be_put_in_the_order_of_their_times() -> None:
    """A batch that closes many windows of a group has them in no order of its own."""
    mixed = results((b"k", b"2", 2, None), (b"k", b"1", 1, None), (b"j", b"3", 3, None))
    assert [record[1] for record in mixed.by_time().records(1)] == [b"1", b"2", b"3"]


def test_a_result_without_a_key_goes_where_its_value_says() -> None:
    """Not all of them into one partition, and each always into the same."""
    rows = results(*((None, b"%d" % i, i, None) for i in range(40)))
    found = {value: partition for _, value, _, partition in rows.records(4)}
    keyed = results(*((b"%d" % i, b"", i, None) for i in range(40)))
    assert found == {key: partition for key, _, _, partition in keyed.records(4)}
    assert set(found.values()) == {0, 1, 2, 3}
