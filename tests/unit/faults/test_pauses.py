"""Pauses between results, by commit markers."""

from dataclasses import replace

import pytest

from brokers.records import KafkaRecord
from pipeline.ids import Millis, Offset
from pipeline.markers.codec import encode_marker
from pipeline.markers.commit_marker import Totals
from tests.faults.history import Kind
from tests.faults.pauses import Pause, longest_pause, results_ms, too_long
from tests.unit.faults.test_judge import TOPICS
from tests.unit.lanes.marked import marked
from tests.unit.lanes.start.test_decision import marker

STEADY = (0, 100, 200, 300)


def written(*batches: tuple[int, int]) -> list[KafkaRecord]:
    """Markers by when the broker has stamped them, and the results until then."""
    found = []
    for number, (at_ms, results) in enumerate(batches):
        one = replace(marker(number), totals=Totals(records_out=results))
        value = encode_marker(replace(one, sources=marked(one.end)))
        found.append(KafkaRecord(TOPICS.markers, 0, Offset(number), Millis(at_ms), None, value))
    return found


def test_batches_without_results_end_no_pause() -> None:
    """Nor do copies, which a new owner writes: their counts are the same."""
    records = written((10, 0), (20, 3), (30, 3), (40, 5), (50, 5), (60, 6))
    assert results_ms(records) == (20, 40, 60)


@pytest.mark.parametrize(
    ("after", "begin_ms", "end_ms", "pause"),
    [
        ((400, 1_900, 2_000), 300, 2_000, Pause(1_500, 100, 400)),
        ((1_900, 2_000), 300, 2_000, Pause(1_600, 100, 300)),
        ((1_900,), 350, 1_000, Pause(1_600, 100, 300)),
        ((), 300, 1_000, Pause(700, 100, 300)),
        ((400, 5_000), 300, 400, Pause(100, 100, 300)),
    ],
)
def test_the_longest_pause_is_that_between_two_times(
    after: tuple[int, ...], begin_ms: int, end_ms: int, pause: Pause
) -> None:
    """It may begin before, and end later; what comes after the end does not count."""
    assert longest_pause((*STEADY, *after), begin_ms, end_ms) == pause


def test_without_results_the_whole_time_is_one_pause() -> None:
    """Nothing is usual then."""
    assert longest_pause((), 100, 900) == Pause(0, 0, 100)
    assert longest_pause((100,), 100, 900) == Pause(800, 0, 100)


def test_a_pause_beyond_its_deadline_is_a_finding() -> None:
    """Less what is usual."""
    pause = Pause(2_100, 100, 0)
    assert list(too_long(pause, 2_000)) == []
    (found,) = too_long(pause, 1_999)
    assert found.kind is Kind.PAUSE
    assert "a pause of 2,000 ms: 2,100 ms without a result, 100 usual" in found.message
