"""Sizes in bytes as people write them: `512B`, `64MiB`, `4GiB`."""

import re

UNITS_BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
"""Bytes in each unit. No KB, MB or GB: these mean powers of 1000 to some and of 1024 to others."""

_PATTERN = re.compile(r"\s*(\d{1,15})\s*(B|KiB|MiB|GiB|TiB)\s*", re.ASCII)


def parse(text: str) -> int:
    """The bytes of a size such as `4GiB`; never negative.

    >>> parse("4GiB"), parse("512B"), parse("0B")
    (4294967296, 512, 0)

    Raises:
        ValueError: with a message for the reader, when it is no size.
    """
    found = _PATTERN.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{text!r} is not a size: write a whole number and B, KiB, MiB, GiB or TiB"
        )
    return int(found[1]) * UNITS_BYTES[found[2]]


def format(size: int) -> str:  # noqa: A001 - read as sizes.format
    """The shortest text that `parse` reads back as the same number of bytes.

    >>> format(4294967296), format(1536), format(1537), format(0)
    ('4GiB', '1536B', '1537B', '0B')
    """
    if size == 0:
        return "0B"
    unit = next(u for u in reversed(UNITS_BYTES) if size % UNITS_BYTES[u] == 0)
    return f"{size // UNITS_BYTES[unit]}{unit}"
