import pytest

from pipeline.cli.times import parse_time, span
from pipeline.clock import rfc3339
from pipeline.errors import UsageError
from pipeline.ids import Millis

NOW = Millis(1_700_000_000_000)


def test_a_time_in_utc_is_written_and_read_back() -> None:
    """RFC 3339 with milliseconds, and back to the same instant."""
    assert rfc3339(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    assert parse_time("2023-11-14T22:13:20.123Z", NOW) == 1_700_000_000_123


def test_a_time_without_zone_is_utc() -> None:
    """Nothing depends on where the machine stands."""
    assert parse_time("2023-11-14T22:13:20", NOW) == NOW
    assert parse_time("2023-11-14T23:13:20+01:00", NOW) == NOW


@pytest.mark.parametrize(("text", "ago_ms"), [("90s", 90_000), ("5m", 300_000), ("2h", 7_200_000)])
def test_so_long_ago(text: str, ago_ms: int) -> None:
    """A length of time means so long before now."""
    assert parse_time(text, NOW) == NOW - ago_ms


def test_anything_else_is_refused_with_what_is_possible() -> None:
    """The message says how a time is written."""
    with pytest.raises(UsageError, match="not a time") as caught:
        parse_time("yesterday", NOW)
    assert "5m" in caught.value.hint


def test_spans_are_short() -> None:
    """Tables show one or two units."""
    assert [span(n) for n in (0, 999, 59_999, 60_000, 3_600_000)] == [
        "0s",
        "0.9s",
        "59.9s",
        "1m0s",
        "1h0m",
    ]
