import pytest

from pipeline.network.boxes.deduplicate import Deduplicate
from tests.unit.network.described import BoxOf, ErrorsOf


def test_all_columns_pass_through_a_deduplication(box_of: BoxOf) -> None:
    """Event time and key as well; names of columns are case-insensitive."""
    box = box_of("  d: {deduplicate: s, by: [CAR, segment], within: 10m}\n")
    assert isinstance(box, Deduplicate)
    assert (box.by, box.within_ms) == (("car", "segment"), 600_000)
    assert box.event_time_column == "seen_at"
    assert box.key == ()
    assert "car" in [column.name for column in box.columns]


def test_a_deduplication_may_declare_a_key(box_of: BoxOf) -> None:
    """And repeats of the same millisecond alone can be dropped."""
    box = box_of("  d: {deduplicate: s, by: [car], within: 0s, key: [road]}\n")
    assert isinstance(box, Deduplicate)
    assert (box.key, box.within_ms) == (("road",), 0)


@pytest.mark.parametrize(
    ("lines", "problems"),
    [
        ("  d: {deduplicate: s, within: 1m}\n", ["box d needs by"]),
        ("  d: {deduplicate: s, by: [], within: 1m}\n", ["by of box d names no column"]),
        (
            "  d: {deduplicate: s, by: [car]}\n",
            [
                (
                    "box d needs within: for how long repeats of a row are dropped\n"
                    "    hint: write within: 10m; keys are kept for so long"
                )
            ],
        ),
        (
            "  d: {deduplicate: s, by: [cra], within: 1m}\n",
            [
                (
                    "by names cra, which is no column of s (there is: car, kind, road, segment, "
                    "speed, location, seen_at)"
                )
            ],
        ),
        (
            (
                "  a: {map: o, select: {at: at, tags: tags}}\n"
                "  d: {deduplicate: a, by: [tags], within: 1m}\n"
            ),
            ["by names tags, but values of type MAP<STRING, STRING> cannot be compared"],
        ),
        (
            "  d: {deduplicate: s, by: [car, road, CAR], within: 1m}\n",
            ["by has CAR twice"],
        ),
        (
            "  d:\n    deduplicate: s\n    within: 1m\n    by:\n    - cra\n    - cra\n",
            [
                (
                    "by names cra, which is no column of s (there is: car, kind, road, segment, "
                    "speed, location, seen_at)"
                ),
                (
                    "by names cra, which is no column of s (there is: car, kind, road, segment, "
                    "speed, location, seen_at)"
                ),
                "by has cra twice, first in line 10",
            ],
        ),
        (
            "  d: {deduplicate: o, by: [car], within: 1m}\n",
            [
                (
                    "column mixed of o cannot be passed on: it holds a union of INT and STRING\n"
                    "    hint: put a map box in between that selects the columns of o you need"
                )
            ],
        ),
        (
            "  d: {deduplicate: s, by: [car], within: soon}\n",
            [
                (
                    "within of box d: 'soon' is not a duration: write a whole number and "
                    "ms, s, m, h or d"
                )
            ],
        ),
    ],
)
def test_errors_in_a_deduplication(lines: str, problems: list[str], errors_of: ErrorsOf) -> None:
    """One message for each, with the remedy."""
    assert errors_of(lines) == problems
