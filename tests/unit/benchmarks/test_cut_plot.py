"""The picture of a cut."""

from xml.etree import ElementTree as ET

from benchmarks.cut_plot import HEIGHT, LEFT, LINES, RIGHT, WIDTH, Scale, Seen, picture, summed

SEEN = (
    Seen(-1_000, "stable"),
    Seen(3_000, "tentative"),
    Seen(3_500, "tentative"),
    Seen(9_000, "confirmed"),
    Seen(9_500, "replaced"),
    Seen(9_800, "done"),
)


def test_lines_are_sums_of_outcomes() -> None:
    """A confirmed result is stable, and settled."""
    assert summed(SEEN, ("tentative",)) == [(-1_000, 0), (3_000, 1), (3_500, 2)]
    assert summed(SEEN, ("confirmed", "replaced"))[-1] == (9_500, 2)
    assert summed((), ("stable",)) == [(0, 0)]


def test_the_picture_has_a_line_for_each_sum_and_the_time_of_the_cut() -> None:
    """It is well-formed, and everything is inside."""
    root = ET.fromstring(picture(SEEN, 8_000, "tolls"))  # noqa: S314 - our own text
    lines = [one.attrib["points"] for one in root if one.tag.endswith("polyline")]
    assert len(lines) == len(LINES)
    places = [tuple(map(float, point.split(","))) for line in lines for point in line.split()]
    assert all(LEFT <= x <= WIDTH - RIGHT and 0 <= y <= HEIGHT for x, y in places)
    (band,) = [one for one in root if one.tag.endswith("rect")]
    scale = Scale(-1_000, 9_800, 3)
    assert float(band.attrib["x"]) == round(scale.x(0), 1)
    assert float(band.attrib["width"]) == round(scale.x(8_000) - scale.x(0), 1)
