"""Instants as text, without a clock or a time zone of this machine."""

from datetime import UTC, datetime, timedelta

from pipeline.ids import Millis

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(at_ms: Millis) -> str:
    """RFC 3339 in UTC, with milliseconds only where there are any.

    >>> instant(Millis(1_700_000_000_000)), instant(Millis(1_500))
    ('2023-11-14T22:13:20Z', '1970-01-01T00:00:01.500Z')
    """
    moment = _EPOCH + timedelta(milliseconds=at_ms)
    precision = "milliseconds" if at_ms % 1000 else "seconds"
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")
