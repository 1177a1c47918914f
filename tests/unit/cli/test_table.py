from dataclasses import replace

from pipeline.cli.table import Table, fit

TABLE = Table(
    ("name", "in", "late", "node", "error"),
    (("cars.moving", "12", "0", "n1", "it could not be read"), ("cars.x", "3", "-", "n2", "")),
    spare=("node", "late", "in"),
    below="error",
)


def test_a_table_that_fits_is_unchanged() -> None:
    """Every column is as wide as its widest text."""
    fitted = fit(TABLE, 50)
    assert fitted.table == TABLE
    assert fitted.widths == (11, 2, 4, 4, 20)
    assert (fitted.below, fitted.left_out) == (("", ""), ())
    assert fit(TABLE, 49).table.columns == TABLE.columns


def test_first_one_column_moves_below() -> None:
    """Its texts are below their rows, and no column is left out."""
    fitted = fit(TABLE, 48)
    assert fitted.table.columns == ("name", "in", "late", "node")
    assert fitted.table.rows[0] == ("cars.moving", "12", "0", "n1")
    assert fitted.below == ("it could not be read", "")
    assert fitted.left_out == ()


def test_then_empty_columns_are_left_out() -> None:
    """Before others that precede them in `spare`; they are not listed."""
    fitted = fit(TABLE, 26)
    assert fitted.table.columns == ("name", "in", "node")
    assert fitted.left_out == ()


def test_then_others_are_left_out_in_their_order() -> None:
    """They are listed."""
    assert fit(TABLE, 20).left_out == ("node",)
    assert fit(TABLE, 14).left_out == ("node", "in")
    assert fit(TABLE, 14).table.columns == ("name",)


def test_required_columns_are_folded() -> None:
    """The widest column gets the remaining width, but not less than a legible minimum."""
    assert fit(TABLE, 9).widths == (9,)
    assert fit(TABLE, 3).widths == (8,)
    wide = replace(TABLE, spare=(), below="")
    assert fit(wide, 40).widths == (11, 2, 4, 4, 11)
