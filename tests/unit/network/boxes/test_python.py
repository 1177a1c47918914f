from collections.abc import Callable

import pytest

from pipeline.network.boxes.python import SOURCE_MAX, Python
from tests.unit.network.described import CODE, HEAD, SCHEMAS, BoxOf, ErrorsOf, column_texts

COLUMNS = "columns: {car: STRING NOT NULL, tags: ARRAY<STRING>}"


def test_a_python_box_contains_the_text_of_its_file(box_of: BoxOf) -> None:
    """So every node runs the same, whatever is on its disk."""
    box = box_of(f"  b: {{python: s, function: code/cars.py:classify, {COLUMNS}, timeout: 3s}}\n")
    assert isinstance(box, Python)
    assert (box.function, box.source) == ("code/cars.py:classify", CODE)
    assert column_texts(box) == ["car STRING NOT NULL", "tags ARRAY<STRING>"]
    assert (box.timeout_ms, box.event_time_column, box.key) == (3_000, None, ())


def test_a_function_of_a_module_is_identified_by_its_name(box_of: BoxOf) -> None:
    """There is no file; the key may be one of its columns."""
    box = box_of(f"  b: {{python: s, function: some.module:classify, {COLUMNS}, key: [car]}}\n")
    assert isinstance(box, Python)
    assert (box.source, box.timeout_ms, box.key) == ("", 10_000, ("car",))


@pytest.mark.parametrize(
    ("lines", "problems"),
    [
        (
            "  b: {python: s}\n",
            ["box b needs function", "box b needs columns"],
        ),
        (
            f"  b: {{python: s, function: classify, {COLUMNS}}}\n",
            [
                (
                    "function of box b cannot be 'classify'\n    hint: write FILE.py:NAME, or "
                    "MODULE:NAME of a module that is installed on every node"
                )
            ],
        ),
        (
            "  b: {python: s, function: a.py:f, columns: {}}\n",
            ["columns of box b names no column"],
        ),
        (
            "  b: {python: s, function: a.py:f, columns: {__row: INT, a: TEXT, b: INT}}\n",
            ["__row begins with __, which Medusa keeps for itself"],
        ),
        (
            "  b: {python: s, function: a.py:f, columns: {a: TEXT, b: INT}}\n",
            [
                (
                    "'TEXT' is no type: there is no type TEXT\n    hint: types are BOOLEAN, "
                    "INT, BIGINT, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP, DECIMAL(p,s), "
                    "ARRAY<type>, MAP<STRING, type>, STRUCT<name: type>"
                )
            ],
        ),
        (
            f"  b: {{python: s, function: a.py:f, {COLUMNS}, timeout: 2m, key: [road]}}\n",
            [
                "timeout of box b must be at most 1m",
                ("key names road, which is no column of the output (there is: car, tags)"),
            ],
        ),
        (
            f"  b: {{python: o, function: a.py:f, {COLUMNS}, timeout: 1ms}}\n",
            [
                "timeout of box b must be at least 100ms",
                (
                    "column mixed of o cannot be passed on: it holds a union of INT and "
                    "STRING\n    hint: put a map box in between that selects the columns of o "
                    "you need"
                ),
            ],
        ),
    ],
)
def test_errors_in_a_python_box(lines: str, problems: list[str], errors_of: ErrorsOf) -> None:
    """Each is reported once, with the alternatives."""
    assert errors_of(lines) == problems


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", "is empty"), ("#" * (SOURCE_MAX + 1), "has more than 200,000 bytes")],
)
def test_the_size_of_a_file_is_limited(
    text: str, problem: str, problems_of: Callable[..., list[str]]
) -> None:
    """By the catalog; and it is not empty."""
    lines = f"  b: {{python: s, function: a.py:f, {COLUMNS}}}\n"
    (message,) = problems_of(HEAD + lines, {**SCHEMAS, "a.py": text})
    assert f"the file of a.py:f {problem}" in message
