import pytest

from pipeline.cli.times import parse_time, span
from pipeline.clock import rfc3339
from pipeline.errors import UsageError
from pipeline.ids import Millis

NOW = Millis(1_700_000_000_000)


def test_a_time_in_utc_is_written_and_read_back() -> None:
    """RFC 3339 with milliseconds; the same instant is read back."""
    assert rfc3339(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    assert parse_time("2023-11-14T22:13:20.123Z", NOW) == 1_700_000_000_123


def test_a_time_without_zone_is_utc() -> None:
    """The machine's time zone has no effect."""
    assert parse_time("2023-11-14T22:13:20", NOW) == NOW
    assert parse_time("2023-11-14T23:13:20+01:00", NOW) == NOW


@pytest.mark.parametrize(("text", "ago_ms"), [("90s", 90_000), ("5m", 300_000), ("2h", 7_200_000)])
def test_a_duration_is_subtracted_from_now(text: str, ago_ms: int) -> None:
    """In seconds, minutes and hours."""
    assert parse_time(text, NOW) == NOW - ago_ms


def test_anything_else_is_refused_with_the_possible_forms() -> None:
    """They are in the hint."""
    with pytest.raises(UsageError, match="not a time") as caught:
        parse_time("yesterday", NOW)
    assert "5m" in caught.value.hint


def test_durations_have_one_or_two_units() -> None:
    """So that they fit into tables."""
    assert [span(n) for n in (0, 999, 59_999, 60_000, 3_600_000)] == [
        "0s",
        "0.9s",
        "59.9s",
        "1m0s",
        "1h0m",
    ]
