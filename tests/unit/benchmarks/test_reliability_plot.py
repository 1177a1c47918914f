"""The picture of recovery time against cost."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks import reliability_plot
from benchmarks.costs import Cost, Row, to_json
from benchmarks.reliability_plot import HEIGHT, LEFT, RIGHT, TOP, WIDTH, Point, picture, points_of


def _row(mode: str, nodes: float, pauses: tuple[float, ...], *batches: float) -> Row:
    return Row(mode, Cost(nodes, 0.2, 1.0, 1.0, 2.0), pauses, batches)


ROWS = (
    _row("active_standby", 1.73, (0.0, 1.0, 1.1), 0.9),
    _row("kafka_streams", 0.44, (43.0, 45.0)),
    _row("not killed", 1.5, ()),
)


def test_a_point_is_the_median_and_the_worst_of_a_row() -> None:
    """What was not measured is left out."""
    first, second = points_of(ROWS, "pauses")
    assert first == Point("active_standby", 1.73, 1.0, 1.1)
    assert second == Point("kafka_streams", 0.44, 44.0, 45.0)
    assert points_of(ROWS, "batches") == (Point("active_standby", 1.73, 0.9, 0.9),)


@pytest.mark.parametrize("pause_s", [0.0, 0.3, 500.0])
def test_every_point_is_inside_and_a_longer_time_is_higher(pause_s: float) -> None:
    """It is well-formed. A time of zero, and one beyond the scale, are at its ends."""
    points = (*points_of(ROWS, "pauses"), Point("other", 2.0, pause_s, pause_s))
    root = ET.fromstring(picture(points, "s"))  # noqa: S314 - our own text
    circles = [one.attrib for one in root if one.tag.endswith("circle")]
    places = [(float(one["cx"]), float(one["cy"])) for one in circles]
    assert len(places) == len(points)
    assert all(LEFT <= x <= WIDTH - RIGHT for x, _ in places)
    assert all(TOP <= y <= HEIGHT for _, y in places)
    assert places[1][1] < places[0][1]
    assert places[1][0] < places[0][0]


def test_the_picture_is_that_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the benchmark writes it; without a time there is none."""
    path = tmp_path / "rows.json"
    path.write_text(to_json(ROWS), "utf-8")
    assert reliability_plot.main([str(path), "--by", "batches"]) == 0
    assert ">active_standby<" in capsys.readouterr().out
    path.write_text(to_json(ROWS[2:]), "utf-8")
    with pytest.raises(SystemExit):
        reliability_plot.main([str(path)])
