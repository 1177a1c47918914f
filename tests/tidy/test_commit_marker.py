"""The page about the commit marker lists each of its fields, and names the code that uses it."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from pipeline.markers.commit_marker import CommitMarker
from tests.tidy.tree import ROOT, text_of

PAGE = Path("docs/reference/commit-marker.md")
ROW = re.compile(r"^\| `([a-z_.]+)` \| (.+) \| (.+) \| (?:`([\w/.]+)`)? ?\|$", re.MULTILINE)
NO_CODE = {"late_settled", "sources.name"}
"""What nothing is decided by."""


def parts(kind: Any) -> Any:
    """The dataclass that a field contains, once or several times; None: it contains none."""
    inner = [one for one in get_args(kind) if one not in (type(None), Ellipsis)]
    if inner:
        return parts(inner[-1])  # of a mapping the values
    return kind if is_dataclass(kind) else None


def marker_fields() -> Iterator[str]:
    """The fields of a marker; those of a record in it as `judged.late`."""
    hints = get_type_hints(CommitMarker)
    for one in fields(CommitMarker):
        inner = parts(hints[one.name])
        yield from [f"{one.name}.{of.name}" for of in fields(inner)] if inner else [one.name]


def rows(text: str) -> dict[str, str]:
    """Field → the module that uses it; empty: none is named."""
    return {field: where for field, _, _, where in ROW.findall(text)}


def wrong(text: str) -> list[str]:
    """What the page lacks, or says wrongly."""
    listed, found = rows(text), list(marker_fields())
    problems = [f"{field} is not listed" for field in found if field not in listed]
    problems += [f"{field} is no field" for field in listed if field not in found]
    for field, where in listed.items():
        names = "|".join(field.split("."))  # a record may be compared as a whole
        if not where:
            problems += [] if field in NO_CODE else [f"{field}: no module is named"]
        elif not (ROOT / where).is_file():
            problems.append(f"{field}: there is no {where}")
        elif not re.search(rf"\.(?:{names})\b", text_of(Path(where))):
            problems.append(f"{field}: {where} does not use it")
    return problems


def test_the_page_lists_each_field_and_who_uses_it() -> None:
    """A field that is added needs a decision: what a follower does with it."""
    assert wrong(text_of(PAGE)) == []


def test_the_check_detects_violations() -> None:
    """Of each kind."""
    text = text_of(PAGE)
    assert wrong(text.replace("| `judged.late` |", "| `judged.later` |")) == [
        "judged.late is not listed",
        "judged.later is no field",
    ]
    row = next(line for line in text.splitlines() if line.startswith("| `needed` |"))
    other = row.replace("`pipeline/spark/run/follower.py`", "`pipeline/errors.py`")
    assert wrong(text.replace(row, other)) == ["needed: pipeline/errors.py does not use it"]
    gone = row.replace("`pipeline/spark/run/follower.py`", "`pipeline/gone.py`")
    assert wrong(text.replace(row, gone)) == ["needed: there is no pipeline/gone.py"]
    assert wrong(text.replace(row, row.replace("`pipeline/spark/run/follower.py` ", ""))) == [
        "needed: no module is named"
    ]
