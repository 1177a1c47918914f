"""The table of recovery times and their costs."""

from benchmarks.costs import HEADER, Cost, Row, rows_of, table, to_json

COST = Cost(1.44, 0.2, 2048.0, 4.4, 4.8)


def test_a_mode_is_a_row() -> None:
    """With the median and the worst of its first batches, and of its pauses."""
    row = Row("active_standby", COST, (1.0, 1.5, 0.5), (0.7, 0.9, 0.8))
    shown = "| active_standby | 144 % | 20 % | 2 KiB/s | 4.40 s, 4.80 s | 3 | "
    assert str(row) == f"{shown}0.80 s, 0.90 s | 1.00 s, 1.50 s |"


def test_a_mode_without_kills_has_no_pause() -> None:
    """Its cost alone."""
    assert str(Row("kafka_streams", COST, ())).endswith("| 0 | - | - |")


def test_rows_are_read_as_they_were_written() -> None:
    """From the file of a run."""
    rows = (Row("a", COST, (1.0, 2.0), (0.5,)), Row("b", COST, ()))
    assert rows_of(to_json(rows)) == rows


def test_all_rows_have_as_many_cells_as_the_head() -> None:
    """Own modes and those of peers."""
    lines = table([Row("a", COST, ()), Row("b", COST, (1.0,))]).splitlines()
    assert len(lines) == 4
    assert {line.count("|") for line in lines} == {len(HEADER) + 1}
