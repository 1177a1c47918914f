import json
from dataclasses import asdict, astuple
from pathlib import Path

import pytest

from pipeline.demo.history import History, judge, read_history
from pipeline.errors import BrokenInvariantError
from pipeline.reference.tolls import Rules, Sighting, toll_notifications, tow_dispatches

RULES = Rules(window_ms=10_000, valid_ms=10_000, reach_ms=300_000)


def sightings() -> tuple[Sighting, ...]:
    """A jam, a car that meets its toll, and a stopped car with a tow truck."""
    jam = [Sighting(f"car-{n}", "car", "A1", 2, "A1/2.5", 20.0, 1_000 + n) for n in range(60)]
    return (
        *jam,
        Sighting("car-0", "car", "A1", 2, "A1/2.6", 18.5, 12_000),
        Sighting("car-1", "car", "A1", 2, "A1/2.7", 0.0, 13_000),
        Sighting("tow_truck-0", "tow_truck", "A1", 2, "A1/2.7", 0.0, 14_000),
    )


def test_a_record_file_is_read_back(tmp_path: Path) -> None:
    """What the producer wrote about its deliveries gives the sightings again."""
    file = tmp_path / "fed.jsonl"
    lines = [{"partition": 0, "offset": n, "value": asdict(s)} for n, s in enumerate(sightings())]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    history = read_history(file)
    assert history == History(sightings())
    assert history.last_ms == 14_000


@pytest.mark.parametrize("line", ["{", "[]", '{"value": {"car": "a"}}', '{"offset": 1}'])
def test_a_line_that_is_no_delivery_is_named(tmp_path: Path, line: str) -> None:
    """A damaged record file is told with its line, not read around."""
    file = tmp_path / "fed.jsonl"
    file.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(BrokenInvariantError, match=r"fed\.jsonl:1"):
        read_history(file)


def test_nothing_fed_has_no_last_time() -> None:
    """Without a sighting there is no event time to wait for."""
    assert History(()).last_ms is None


def test_output_that_is_right_is_exact() -> None:
    """The reference's own results, as rows, are judged right, and there are some of both."""
    notifications = [astuple(n) for n in toll_notifications(sightings(), RULES)]
    dispatches = [astuple(d) for d in tow_dispatches(sightings(), RULES)]
    found = judge(History(sightings()), RULES, notifications, dispatches)
    assert [comparison.exact for comparison in found] == [True, True]
    assert [comparison.right for comparison in found] == [1, 1]


def test_a_wrong_toll_is_a_difference() -> None:
    """A notification with another toll is shown beside the right one."""
    (right,) = (astuple(n) for n in toll_notifications(sightings(), RULES))
    wrong = (right[0], 7.0, *right[2:])
    dispatches = [astuple(d) for d in tow_dispatches(sightings(), RULES)]
    notifications, _ = judge(History(sightings()), RULES, [wrong], dispatches)
    (pair,) = notifications.different
    assert (pair.expected, pair.seen) == (right, wrong)
