"""Times and rates as people write them in contracts."""

import re
from datetime import UTC, datetime
from typing import Final

from pipeline import sizes
from pipeline.ids import Millis

_RATES: Final = {"B": 1, "kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}
"""Rates have decimal units, as those of networks; `KiB/s` and so on are read as well."""
_RATE: Final = re.compile(r"(\d{1,15})\s*(B|kB|MB|GB|KiB|MiB|GiB)/s", re.ASCII)
_SECOND_MS: Final = 1_000


def parse_time(text: str) -> Millis:
    """A time such as `2027-01-01T00:00:00Z`; a day alone begins at midnight, UTC.

    >>> parse_time("1970-01-02"), parse_time("1970-01-01T00:00:01Z")
    (86400000, 1000)

    Raises:
        ValueError: it is no time, has no zone, or parts of milliseconds.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no time: write 2027-01-01T00:00:00Z") from error
    if len(text) == len("2027-01-01"):
        moment = moment.replace(tzinfo=UTC)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone: end it with Z")
    if moment.microsecond % 1_000:
        raise ValueError(f"{text!r} has more than three decimal places")
    whole = moment.replace(microsecond=0)
    return Millis(int(whole.timestamp()) * _SECOND_MS + moment.microsecond // 1_000)


def format_time(at_ms: Millis) -> str:
    """The text that `parse_time` reads as the same time."""
    moment = datetime.fromtimestamp(at_ms // _SECOND_MS, UTC)
    fraction = f".{at_ms % _SECOND_MS:03d}" if at_ms % _SECOND_MS else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def parse_rate(text: str) -> int:
    """Bytes per second of a rate.

    >>> parse_rate("2MB/s"), parse_rate("1MiB/s")
    (2000000, 1048576)

    Raises:
        ValueError: it is no rate.
    """
    found = _RATE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no rate: write a whole number and B/s, kB/s, MB/s or GB/s")
    return int(found[1]) * (_RATES | sizes.UNITS_BYTES)[found[2]]


def format_rate(bytes_per_s: int) -> str:
    """The shortest text that `parse_rate` reads as the same rate.

    >>> format_rate(2_000_000), format_rate(1_048_576)
    ('2MB/s', '1048576B/s')
    """
    unit = next(u for u in reversed(_RATES) if bytes_per_s % _RATES[u] == 0)
    return f"{bytes_per_s // _RATES[unit]}{unit}/s"
