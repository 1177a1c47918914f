import pytest

from pipeline.counting import counted


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 topics"), (1, "1 topic"), (2, "2 topics"), (1_234, "1,234 topics")]
)
def test_one_is_singular(number: int, words: str) -> None:
    """All other numbers are plural, with a thousands separator."""
    assert counted(number, "topic") == words
