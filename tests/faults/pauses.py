"""Pauses between results, by the commit markers of a fragment. Pure.

The broker stamps each marker when the batch is written, so all times are of one clock. A batch
without results ends no pause.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from brokers.records import KafkaRecord
from pipeline.markers.codec import decode_marker
from tests.faults.history import Finding, Kind


@dataclass(frozen=True, slots=True)
class Pause:
    """The longest time without a result in a part of a history, in ms.

    Args:
        longest: from one batch with results to the next.
        usual: the median of these times before.
        from_ms: when the longest began, by the clock of the broker.
    """

    longest: int
    usual: int
    from_ms: int

    @property
    def ms(self) -> int:
        """How much longer it was than usual."""
        return max(0, self.longest - self.usual)

    def __str__(self) -> str:
        spans = f"{self.longest:,} ms without a result, {self.usual:,} usual"
        return f"a pause of {self.ms:,} ms: {spans}"


def results_ms(markers: Sequence[KafkaRecord]) -> tuple[int, ...]:
    """When results were written, of the records of a topic of markers in their order."""
    found, last = list[int](), 0
    for record in markers:
        marker = decode_marker(record.value or b"", f"offset {record.offset}")
        if marker.totals.records_out > last:
            found.append(record.timestamp_ms)
        last = max(last, marker.totals.records_out)
    return tuple(found)


def longest_pause(times_ms: Sequence[int], begin_ms: int, end_ms: int) -> Pause:
    """The longest pause of which a part is between two times.

    Args:
        times_ms: when results were written, ascending.
        begin_ms: what came before is as usual.
        end_ms: if nothing was written later, a pause lasts until then.
    """
    known = [at for at in times_ms if at <= begin_ms]
    until = times_ms if times_ms and times_ms[-1] >= end_ms else (*times_ms, end_ms)
    gaps = [(after - at, at) for at, after in pairwise(until) if after > begin_ms and at < end_ms]
    longest, from_ms = max(gaps, default=(0, begin_ms))
    usual = median([after - at for at, after in pairwise(known)] or [0])
    return Pause(longest, round(usual), from_ms)


def too_long(pause: Pause, most_ms: int) -> Iterator[Finding]:
    """A pause that exceeds its deadline."""
    if pause.ms > most_ms:
        yield Finding(Kind.PAUSE, f"{pause}; {most_ms:,} ms are the most")
