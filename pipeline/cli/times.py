"""Times on the command line: RFC 3339 in UTC, or a duration before now."""

import re
from datetime import UTC, datetime

from pipeline.clock import rfc3339
from pipeline.errors import UsageError
from pipeline.ids import Millis

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_AGO = re.compile(r"(\d{1,6})([smhd])")


def parse_time(text: str, now_ms: Millis) -> Millis:
    """Parse a time: RFC 3339 (UTC if it has no zone), or a duration ago: `90s`, `5m`, `2h`, `1d`.

    Raises:
        UsageError: the text is neither.
    """
    ago = _AGO.fullmatch(text)
    if ago:
        return Millis(now_ms - int(ago[1]) * _SECONDS[ago[2]] * 1000)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            f"{text!r} is not a time",
            hint="write 2026-01-31T12:00:00Z, or 90s, 5m, 2h, 1d for so long ago.",
        ) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return Millis(round(moment.timestamp() * 1000))


def time_text(at_ms: int | None) -> str | None:
    """A time in RFC 3339, or None."""
    return None if at_ms is None else rfc3339(at_ms)


def span(length_ms: int) -> str:
    """A duration in short form, for tables.

    >>> [span(n) for n in (0, 250, 1500, 75_000, 7_260_000)]
    ['0s', '0.2s', '1.5s', '1m15s', '2h1m']
    """
    seconds = length_ms / 1000
    if length_ms == 0:
        return "0s"
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{int(seconds * 10) / 10:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:  # noqa: PLR2004 - an hour
        return f"{minutes}m{rest}s"
    return f"{minutes // 60}h{minutes % 60}m"
