import pytest

from pipeline.network.model import ColumnRef
from pipeline.planner.rename_columns import plain_column, rename, rename_sql
from tests.unit.planner.networks import expression


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("`a` + `a`", "`x` + `x`"),
        ("`b`.`a`", "`b`.`a`"),
        ("concat(`a`, '`a`')", "concat(`x`, '`a`')"),
        ("concat(`a`, 'it\\'s `a`')", "concat(`x`, 'it\\'s `a`')"),
        ("concat(`a`, 'it''s `a`')", "concat(`x`, 'it''s `a`')"),
        ('concat(`a`, "`a`")', 'concat(`x`, "`a`")'),
        ("`a`.`left`.`a`", "`x`.`left`.`a`"),
        ("a(`c``d`)", "a(`e``f`)"),
    ],
)
def test_only_columns_are_renamed(sql: str, expected: str) -> None:
    """Fields of structures and text in string literals stay unchanged."""
    names = {ColumnRef("a"): ColumnRef("x"), ColumnRef("c`d"): ColumnRef("e`f")}
    assert rename_sql(sql, names, sided=False) == expected


def test_columns_named_like_a_side_are_columns() -> None:
    """In a join the first name is the side, also when the column has the same name."""
    names = {ColumnRef("left", "left"): ColumnRef("x"), ColumnRef("left", "right"): ColumnRef("y")}
    sql = "`left`.`left` + `right`.`left` + `left`.`left`.`left`"
    assert rename_sql(sql, names, sided=True) == "`x` + `y` + `x`.`left`"


def test_renaming_covers_failure_and_columns() -> None:
    """The condition of failure reads the renamed columns too, and the text stays the user's."""
    before = expression("`a` > 1")
    failing = type(before)("a > 1", before.sql, "`a` IS NULL", before.type, True, before.columns)
    after = rename(failing, {ColumnRef("a"): ColumnRef("x")})
    assert after.text == "a > 1"
    assert after.failed == "`x` IS NULL"
    assert after.columns == {ColumnRef("x")}


def test_a_plain_column_is_only_a_column() -> None:
    """Computed ones, and those that read a field of a structure, are not plain."""
    assert plain_column(expression("`left`.`a`")) == ColumnRef("a", "left")
    assert plain_column(expression("`a` + 0")) is None
    assert plain_column(expression("1")) is None
