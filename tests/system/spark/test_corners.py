"""Edge cases in which Spark alone deviates from the documented semantics, in whole networks.

Expressions are tested in test_expressions_on_spark.py; this covers boxes, and inputs that would
end the Java process.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.spark.run.from_memory import MemoryQueries
from tests.system.spark.support import failures

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

INSTANT = {"type": "long", "logicalType": "timestamp-millis"}
FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "int", "default": 0},
    {"name": "at", "type": INSTANT},
    *(
        {"name": name, "type": ["null", kind], "default": None}
        for name, kind in (("d", "double"), ("f", "float"), ("text", "string"))
    ),
    {"name": "sizes", "type": {"type": "array", "items": "int"}, "default": []},
    {"name": "true", "type": "int", "default": 0},
    {"name": "__decoded", "type": "boolean", "default": False},
]
NETWORK = r"""
network: corners
streams:
  s: {topic: s, schema: row.avsc, event_time: at, lateness: 0s}
  t: {topic: t, schema: row.avsc, event_time: at, lateness: 0s}
boxes:
  doubles: {join: {left: s, right: t, on: [d], within: 5s}, select: {l: left.id, r: right.id}}
  floats: {join: {left: s, right: t, on: [f], within: 5s}, select: {l: left.id, r: right.id}}
  words: {aggregate: s, window: 1m, by: ['true'], compute: {n: count(*)}}
  choices: {map: s, select: {id: id, given: 'size(CASE WHEN id > 1 THEN sizes END)'}}
  repeats: {map: s, select: {id: id, found: "text RLIKE '^(a|b)*c$'"}}
  replaced: {map: s, select: {id: id, text: "regexp_replace(text, '(a|b)+', '')"}}
  many: {map: s, select: {id: id, found: "text LIKE '%a%a%a%a%a%a%a%a%a%a%a%a%b'"}}
  small: {map: s, select: {id: id, found: "text ILIKE '%A%A%A%A%A%A%A%A%A%A%A%A%C'"}}
"""
LONG = "a" * 100_000 + "c"
FITS = "ab" * 1_499 + "c"


def at(second: int) -> str:
    """A time of the test."""
    return f"2026-01-01T08:00:{second:02d}Z"


def expect(box: str, *records: object) -> dict[str, object]:
    """The test step that expects a box's output."""
    return {"expect": box, "records": list(records)}


STEPS: list[object] = [
    {
        "send": "s",
        "records": [
            {"id": 1, "at": at(0), "true": 7},
            {"id": 2, "at": at(1), "true": 8, "d": 0.5, "f": 0.5, "sizes": [1, 2]},
            {"id": 3, "at": at(2), "true": 8, "d": "NaN", "f": "NaN", "text": FITS},
            {"id": 4, "at": at(3), "true": 8, "text": LONG},
        ],
    },
    {
        "send": "t",
        "records": [
            {"id": 11, "at": at(0)},
            {"id": 12, "at": at(1), "d": 0.5, "f": 0.5},
            {"id": 13, "at": at(2), "d": "NaN", "f": "NaN"},
        ],
    },
    {"advance": "2026-01-01T08:02:00Z"},
    expect("doubles", {"l": 2, "r": 12}, {"l": 3, "r": 13}),
    expect("floats", {"l": 2, "r": 12}, {"l": 3, "r": 13}),
    expect("words", {"true": 7, "n": 1}, {"true": 8, "n": 3}),
    expect(
        "choices",
        {"id": 1, "given": None},
        {"id": 2, "given": 2},
        {"id": 3, "given": 0},
        {"id": 4, "given": 0},
    ),
    expect(
        "repeats",
        {"id": 1, "found": None},
        {"id": 2, "found": None},
        {"id": 3, "found": True},
    ),
    expect(
        "replaced",
        {"id": 1, "text": None},
        {"id": 2, "text": None},
        {"id": 3, "text": "c"},
    ),
    *(
        expect(
            box,
            {"id": 1, "found": None},
            {"id": 2, "found": None},
            {"id": 3, "found": found},
            {"id": 4, "found": found},
        )
        for box, found in (("many", False), ("small", True))
    ),
    {
        "dead_letters": [
            {"stream": "s", "reason": "evaluation_failed", "box": box, "record": {"id": 4}}
            for box in ("repeats", "replaced")
        ]
    },
]


def test_edge_cases_give_the_documented_results(queries: MemoryQueries, tmp_path: Path) -> None:
    """Null fractions, names that are SQL keywords, strings that are long for a pattern."""
    schema = {"type": "record", "name": "Row", "fields": FIELDS}
    (tmp_path / "row.avsc").write_text(json.dumps(schema), "utf-8")
    (tmp_path / "network.yaml").write_text(NETWORK, "utf-8")
    test = {"network": "../network.yaml", "steps": STEPS}
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "corners.yaml").write_text(json.dumps(test), "utf-8")
    assert failures(tmp_path, queries) == []
