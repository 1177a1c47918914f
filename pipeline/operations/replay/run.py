"""Replay into a topic of its own: recomputes results and writes them in one transaction."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from brokers.records import NewTopicSpec
from pipeline.clock import Clock
from pipeline.counting import counted
from pipeline.operations.connections import Connections
from pipeline.operations.replay.engine import ReplayEngine
from pipeline.operations.replay.inputs import ReplayInput
from pipeline.operations.replay.output import check_empty
from pipeline.replay.write import Target, write

_PROGRESS_EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class Replayed:
    """Result of a replay.

    Args:
        written: number of results.
        left_out: input records that cannot be processed, by reason.
        failed: results that cannot be computed, by reason.
    """

    written: int
    left_out: Mapping[str, int]
    failed: Mapping[str, int]


def replay(
    found: ReplayInput,
    into: NewTopicSpec,
    engine: ReplayEngine,
    connections: Connections,
    clock: Clock,
) -> Replayed:
    """Compute the results of a period and write them; all become visible at once, or none.

    Args:
        found: the records to read.
        into: the topic, created if there is a result.
        engine: computes the results and reports progress.
        connections: to Kafka.
        clock: of deadlines.

    Raises:
        RefusedError: the topic has records, or the replay exceeds the transaction timeout.
        FencedError: another replay into the same topic has begun.
        UnavailableError, RetryError: nothing of it is visible; run it again.
    """
    recomputer = engine.recomputer
    engine.report(f"judging {counted(found.offsets, 'offset')} of the inputs")
    left_out = recomputer.left_out(found.ranges, found.period)
    engine.report("computing")
    target = Target(into, partial(check_empty, into, connections), _Progress(engine.report, clock))
    writer = connections.replayer(engine.what.fragment.names, into.name)
    results = recomputer.results(found.ranges, found.period)
    written = write(results, target, writer, connections.topics, clock)
    connections.topics.await_decided(into.name)
    return Replayed(written, dict(left_out), dict(recomputer.failed))


class _Progress:
    """Progress report: the number of written results, every few seconds."""

    def __init__(self, report: Callable[[str], None], clock: Clock) -> None:
        self._report = report
        self._clock = clock
        self._last_s = clock.monotonic_s()

    def __call__(self, count: int) -> None:
        now_s = self._clock.monotonic_s()
        if now_s - self._last_s >= _PROGRESS_EVERY_S:
            self._last_s = now_s
            self._report(f"{counted(count, 'result')} written, not visible yet")
