import pytest

from pipeline.network.boxes.common import column_name_problem


@pytest.mark.parametrize("name", ["price", "Price2", "_p"])
def test_names_of_columns(name: str) -> None:
    """Letters, digits and _, of any case."""
    assert column_name_problem(name) == ("", "")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("a-b", "letters, digits and _, not beginning with a digit"),
        ("f(x)", "letters, digits and _, not beginning with a digit"),
        # The remainder of `{price: round(price, 2)}`.
        ("2)", "in {…} a comma ends a column: put an expression that holds one in quotes"),
    ],
)
def test_an_invalid_name_has_a_hint(name: str, hint: str) -> None:
    """One that YAML has split at a comma has its own hint."""
    assert column_name_problem(name) == (f"{name!r} is no name for a column", hint)
