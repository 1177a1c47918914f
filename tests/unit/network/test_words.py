"""Columns with the names of SQL keywords."""

import json

import pytest

from pipeline.errors import DocumentError
from pipeline.network.boxes.aggregate import Aggregate
from tests.unit.network.conftest import LoadDocument

WORDS = ("true", "null", "select", "case", "interval", "order", "end")
SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "W",
        "fields": [
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            *({"name": word, "type": "int"} for word in WORDS),
        ],
    }
)
HEAD = "network: n\nstreams: {s: {topic: s, schema: w.avsc, event_time: at}}\nboxes:\n"


@pytest.mark.parametrize("word", WORDS)
def test_a_list_may_contain_any_column_name(word: str, load_text: LoadDocument) -> None:
    """A list contains no literals."""
    lines = (
        f"  counts: {{aggregate: s, window: 1m, by: ['{word}'], compute: {{n: count(*)}}}}\n"
        f"  some: {{map: s, select: ['{word}', at]}}\n"
        f"  same: {{join: {{left: s, right: s, on: [at], within: 0s}}, select: ['left.{word}']}}\n"
        f"  quoted: {{map: s, select: {{x: '`{word}`'}}}}\n"
    )
    counts, some, same, quoted = load_text(HEAD + lines, {"w.avsc": SCHEMA}).boxes
    assert isinstance(counts, Aggregate)
    assert [str(box.columns[0]) for box in (counts, some, same)] == [f"{word} INT NOT NULL"] * 3
    assert str(quoted.columns[0]) == "x INT NOT NULL"


@pytest.mark.parametrize("word", ["select", "when"])
def test_an_expression_needs_back_quotes_for_keywords(word: str, load_text: LoadDocument) -> None:
    """Without them a keyword has its meaning in SQL."""
    with pytest.raises(DocumentError) as caught:
        load_text(f"{HEAD}  some: {{filter: s, where: {word} > 1}}\n", {"w.avsc": SCHEMA})
    (problem,) = caught.value.problems
    assert problem.hint.endswith(f"a column of that name is written `{word}`")
