"""Sending records when their time has come."""

from collections.abc import Callable, Iterable, Iterator

from connectors.generators.disturbing import Sent
from pipeline.clock import Clock

WAIT_MAX_S = 0.2
"""How long a wait may last before it is asked again whether to stop."""


def paced(
    sent: Iterable[Sent], start_ms: int, clock: Clock, stopped: Callable[[], bool]
) -> Iterator[Sent]:
    """Return each record when its time has come, by a clock that is never set.

    Records that are overdue are returned at once, so a reader that is too slow falls behind.

    Args:
        sent: records, in the order of their times.
        start_ms: the time of the records at which this begins.
        clock: gives the time, and waits.
        stopped: whether to end; asked before each record and at least every `WAIT_MAX_S`.
    """
    began_s = clock.monotonic_s()
    for one in sent:
        due_s = began_s + (one.at_ms - start_ms) / 1_000
        while not stopped() and (left_s := due_s - clock.monotonic_s()) > 0:
            clock.sleep(min(left_s, WAIT_MAX_S))
        if stopped():
            return
        yield one
