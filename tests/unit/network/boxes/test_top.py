import pytest

from pipeline.network.boxes.top import Top
from pipeline.network.boxes.windows import SlidingWindow
from tests.unit.network.described import BoxOf, ErrorsOf, column_texts


def test_a_top_has_groups_window_rank_and_the_selected_columns(box_of: BoxOf) -> None:
    """Without `select`, every column that is no group."""
    box = box_of(
        "  b:\n    top: s\n    rows: 3\n    highest: speed * 2\n"
        "    window: {size: 1m, slide: 10s}\n    by: {street: road}\n    select: [car, seen_at]\n"
    )
    assert isinstance(box, Top)
    assert column_texts(box) == [
        "street STRING NOT NULL",
        "window_start TIMESTAMP NOT NULL",
        "window_end TIMESTAMP NOT NULL",
        "rank INT NOT NULL",
        "car STRING NOT NULL",
        "seen_at TIMESTAMP NOT NULL",
    ]
    assert (box.rows, box.highest, box.ordered_by.text) == (3, True, "speed * 2")
    assert box.window == SlidingWindow(60_000, 0, 10_000)
    assert (box.key, box.event_time_column) == (("street",), "window_end")


def test_without_select_every_other_column_is_included(box_of: BoxOf) -> None:
    """And without groups the key is the window's end."""
    box = box_of("  b: {top: s, rows: 1, lowest: speed, window: 1m, by: [road]}\n")
    assert isinstance(box, Top)
    assert [c.name for c in box.columns[4:]] == [
        c.name for c in box_of("  f: {filter: s, where: true}\n").columns if c.name != "road"
    ]
    assert not box.highest
    box = box_of("  b: {top: s, rows: 1, lowest: speed, window: 1m}\n")
    assert box.key == ("window_end",)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ("rows: 1, highest: speed, lowest: speed, window: 1m", "highest or lowest"),
        ("rows: 1, window: 1m", "highest: EXPRESSION or lowest: EXPRESSION"),
        ("highest: speed, window: 1m", "box b needs rows"),
        ("rows: 0, highest: speed, window: 1m", "whole number from 1 to 1000, not '0'"),
        ("rows: 5000, highest: speed, window: 1m", "whole number from 1 to 1000, not '5000'"),
        ("rows: 1, highest: speed", "box b needs window"),
        ("rows: 1, highest: sped, window: 1m", "speed"),
        ("rows: 1, highest: count(*), window: 1m", "count"),
        ("rows: 1, highest: 'NULL', window: 1m", "NULL alone has no type"),
        ("rows: 1, highest: speed, window: 1m, select: {rank: speed}", "called rank"),
        ("rows: 1, highest: speed, window: 1m, by: [road], select: [road]", "called road"),
        ("rows: 1, highest: speed, window: 1m, select: []", "names no column"),
        ("rows: 1, highest: speed, window: 1m, key: [sped]", "key names sped"),
    ],
)
def test_errors_in_a_top(entries: str, message: str, errors_of: ErrorsOf) -> None:
    """At their places, with the alternatives."""
    assert message in "\n".join(errors_of(f"  b: {{top: s, {entries}}}\n"))


def test_rows_are_compared_by_ordered_types(errors_of: ErrorsOf) -> None:
    """A map has no order."""
    reported = errors_of("  b: {top: o, rows: 1, highest: tags, window: 1m, select: [car]}\n")
    assert "highest is MAP<STRING, STRING>, and rows cannot be compared by that" in reported


def test_an_unsupported_column_has_to_be_omitted(box_of: BoxOf, errors_of: ErrorsOf) -> None:
    """By a `select`."""
    top = "  b: {top: o, rows: 1, highest: segment, window: 1m%s}\n"
    assert "column mixed of o cannot be passed on" in "\n".join(errors_of(top % ""))
    assert box_of(top % ", select: [car]").columns[-1].name == "car"
