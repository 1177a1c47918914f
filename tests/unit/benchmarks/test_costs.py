"""The table of recovery times and their costs."""

from benchmarks.costs import HEADER, Cost, Row, table

COST = Cost(1.44, 0.2, 2048.0, 4.4, 4.8)


def test_a_mode_is_a_row() -> None:
    """With the median and the worst of its pauses."""
    row = Row("active_standby", COST, (1.0, 1.5, 0.5))
    shown = "| active_standby | 144 % | 20 % | 2 KiB/s | 4.40 s, 4.80 s | 1.00 s, 1.50 s |"
    assert str(row) == shown


def test_a_mode_without_kills_has_no_pause() -> None:
    """Its cost alone."""
    assert str(Row("kafka_streams", COST, ())).endswith("| - |")


def test_all_rows_have_as_many_cells_as_the_head() -> None:
    """Own modes and those of peers."""
    lines = table([Row("a", COST, ()), Row("b", COST, (1.0,))]).splitlines()
    assert len(lines) == 4
    assert {line.count("|") for line in lines} == {len(HEADER) + 1}
