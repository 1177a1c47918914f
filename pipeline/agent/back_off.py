"""Back-off of a failed lane before its next try."""

import zlib

from pipeline.ids import FragmentId

FIRST_MS = 1_000
MOST_MS = 60_000
"""Longest pause: the pause is one second after the first failure and doubles with each one."""


def back_off_ms(fragment: FragmentId, failures: int) -> int:
    """The pause before the next try: exponential back-off with jitter.

    The jitter is up to a quarter less, by a hash of the fragment's name and the number of failures,
    so that the lanes of a node that lost its broker do not all retry at once.
    """
    full = min(MOST_MS, FIRST_MS << min(max(failures - 1, 0), 16))
    name = f"{fragment}.{failures}"
    return full - full * (zlib.crc32(name.encode()) % 1_000) // 4_000
