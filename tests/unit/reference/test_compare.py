from hypothesis import given
from hypothesis import strategies as st

from pipeline.reference.compare import Comparison, Different, Row, compare, describe

COLUMNS = ("car", "at", "toll")
ROWS = st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.sampled_from([0.0, 2.0, 8.0]))


def judge(expected: list[Row], seen: list[Row]) -> Comparison:
    """Compare rows of the columns above."""
    return compare("tolls", COLUMNS, ("car", "at"), expected, seen)


@given(st.lists(ROWS), st.randoms())
def test_any_order_of_the_expected_rows_is_exact(rows: list[Row], random: object) -> None:
    """Output that contains the expected rows, in any order, is exact."""
    shuffled = sorted(rows, key=lambda _row: random.random())  # type: ignore[attr-defined]
    assert judge(rows, shuffled).exact


def test_each_kind_of_difference_is_distinct() -> None:
    """A lost, a repeated, a changed and an invented row are in four different lists."""
    expected: list[Row] = [("a", 1, 2.0), ("b", 1, 2.0), ("c", 1, 2.0)]
    seen: list[Row] = [("b", 1, 2.0), ("b", 1, 2.0), ("c", 1, 8.0), ("d", 1, 0.0)]
    found = judge(expected, seen)
    assert found.missing == (("a", 1, 2.0),)
    assert found.duplicated == (("b", 1, 2.0),)
    assert found.different == (Different(("c", 1, 2.0), ("c", 1, 8.0)),)
    assert found.unexpected == (("d", 1, 0.0),)
    assert (found.expected, found.seen, found.right) == (3, 4, 1)
    assert not found.exact


def test_a_row_expected_twice_must_occur_twice() -> None:
    """Equal rows are counted, not merged."""
    row: Row = ("a", 1, 2.0)
    assert judge([row, row], [row, row]).exact
    assert judge([row, row], [row]).missing == (row,)
    assert judge([row], [row, row, row]).duplicated == (row, row)


@given(st.lists(ROWS, max_size=12), st.lists(ROWS, max_size=12))
def test_every_row_is_counted_once(expected: list[Row], seen: list[Row]) -> None:
    """Right, missing and different rows add up to the expected ones, and so do the actual ones."""
    found = judge(expected, seen)
    paired = len(found.different)
    assert found.right + len(found.missing) + paired == len(expected)
    assert found.right + len(found.duplicated) + len(found.unexpected) + paired == len(seen)
    assert found.exact == (sorted(expected) == sorted(seen))


@given(st.lists(ROWS, min_size=1, max_size=12), st.data())
def test_one_lost_row_is_found(rows: list[Row], data: st.DataObject) -> None:
    """Whichever single row is lost, exactly that one is reported."""
    lost = data.draw(st.integers(0, len(rows) - 1))
    found = judge(rows, rows[:lost] + rows[lost + 1 :])
    assert found.missing == (rows[lost],)
    assert found.unexpected == found.duplicated == ()
    assert found.different == ()


def test_the_report_of_a_correct_run_is_one_line() -> None:
    """Without differences there is one line with the number of rows compared."""
    row: Row = ("a", 1, 2.0)
    assert describe(judge([row], [row])) == ("tolls: 1 compared, all right",)


def test_the_report_contains_examples_up_to_the_limit() -> None:
    """A long list of differences is counted in full and printed in part."""
    lost: list[Row] = [("a", at, 2.0) for at in range(7)]
    lines = describe(judge([*lost, ("b", 0, 2.0)], [("b", 0, 8.0)]), limit=2)
    assert lines == (
        "tolls: 8 expected, 1 came, 0 right",
        "  missing: 7",
        "    car='a', at=0, toll=2.0",
        "    car='a', at=1, toll=2.0",
        "    … and 5 more",
        "  different: 1",
        "    car='b', at=0, toll=2.0 came as car='b', at=0, toll=8.0",
    )
