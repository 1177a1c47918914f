"""Calibration: how fast a core of this machine is."""

import time
import zlib
from collections.abc import Iterator
from typing import Final

from pipeline.metering.load import CoreSpeed

ROUNDS: Final = 12
"""About 30 ms altogether; the fastest counts, since the others were disturbed."""
TEXT_BYTES: Final = 131_072
WORDS: Final = 400


def calibrate(rounds: int = ROUNDS) -> CoreSpeed:
    """Compress a fixed text, some times, by the CPU time of this thread."""
    text, spent_ns = calibration_text(), []
    for _ in range(rounds):
        began_ns = time.thread_time_ns()
        zlib.compress(text, 6)
        spent_ns.append(time.thread_time_ns() - began_ns)
    return CoreSpeed.measured(spent_ns)


def calibration_text() -> bytes:
    """A fixed text of words, always the same."""
    draw = _numbers()
    words = [
        bytes(ord("a") + next(draw) % 26 for _ in range(2 + next(draw) % 8)) for _ in range(WORDS)
    ]
    text = b""
    while len(text) < TEXT_BYTES:
        text += b" ".join(words[next(draw) % WORDS] for _ in range(WORDS)) + b" "
    return text[:TEXT_BYTES]


def _numbers() -> Iterator[int]:
    """Upper bits of a linear congruential generator: the lower ones repeat soon."""
    state = 1
    while True:
        state = (state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % (1 << 64)
        yield state >> 33
