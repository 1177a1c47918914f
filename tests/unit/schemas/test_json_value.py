from collections.abc import Callable

import pytest

from schemas.json_value import (
    Json,
    list_of,
    number_of,
    object_of,
    parts_of,
    text_of,
    texts_in,
    texts_of,
)


@pytest.mark.parametrize(
    ("read", "value", "others"),
    [
        (object_of, {"a": 1}, ([], "a", None)),
        (list_of, [1], ({}, "a", None)),
        (text_of, "a", (1, ["a"], None)),
        (number_of, 1, (1.0, "1", None)),
        (texts_of, ["a"], ([1], "a", None)),
    ],
)
def test_a_known_form_is_read_and_another_one_is_an_error(
    read: Callable[[Json], Json], value: Json, others: tuple[Json, ...]
) -> None:
    """The error is that of a value of another type."""
    assert read(value) == value
    for other in others:
        with pytest.raises(TypeError, match="was expected"):
            read(other)


def test_texts_are_all_or_none() -> None:
    """One other value in the list is enough."""
    assert texts_in(["a", "b"]) == ("a", "b")
    assert texts_in(["a", 1]) is None
    assert texts_in("ab") is None


def test_parts_are_those_of_lists_and_objects() -> None:
    """Not the characters of a text."""
    assert list(parts_of({"a": 1, "b": [2]})) == [1, [2]]
    assert list(parts_of([1, "b"])) == [1, "b"]
    assert list(parts_of("ab")) == []
