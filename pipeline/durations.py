"""Lengths of time as people write them: `500ms`, `5s`, `1m`, `2h`, `7d`."""

import re

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
"""Milliseconds in each unit. No weeks, months or years: what is long enough is said in days."""

MAX_MS = 100 * 365 * UNITS_MS["d"]
"""The longest duration that is accepted, a hundred years: a longer one is a slip of the finger."""

_PATTERN = re.compile(r"\s*(\d{1,15})\s*(ms|s|m|h|d)\s*", re.ASCII)


def parse(text: str) -> int:
    """The milliseconds that a duration such as `1m` stands for; never negative.

    >>> parse("1m"), parse("250ms"), parse("0s")
    (60000, 250, 0)

    Raises:
        ValueError: with a message for the reader, when it is no duration.
    """
    found = _PATTERN.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a duration: write a whole number and ms, s, m, h or d")
    value = int(found[1]) * UNITS_MS[found[2]]
    if value > MAX_MS:
        raise ValueError(f"{text!r} is longer than {format(MAX_MS)}")
    return value


def format(ms: int) -> str:  # noqa: A001 - read as durations.format
    """The shortest text that `parse` reads back as the same number of milliseconds.

    >>> format(60_000), format(90_000), format(0), format(1_500)
    ('1m', '90s', '0s', '1500ms')
    """
    if ms == 0:
        return "0s"
    unit = next(u for u in reversed(UNITS_MS) if ms % UNITS_MS[u] == 0)
    return f"{ms // UNITS_MS[unit]}{unit}"


def spell(ms: int) -> str:
    """A length of time in every unit that it needs, for people; `parse` reads only some of these.

    >>> spell(2_592_060_000), spell(1_500), spell(0)
    ('30d 1m', '1s 500ms', '0s')
    """
    found = []
    for unit, size in reversed(UNITS_MS.items()):
        count, ms = divmod(ms, size)
        if count:
            found.append(f"{count}{unit}")
    return " ".join(found) or "0s"
