"""What the results of one lane wait for: measures how long, and with a bound, runs its forks."""

from pathlib import Path

from pipeline.boundaries.deadline import Watch, held, look
from pipeline.boundaries.profile import ExternalInput
from pipeline.boundaries.usual_waits import (
    WATCHED_MS,
    UsualWaits,
    Waits,
    usual_waits,
    with_look,
)
from pipeline.clock import steady_ms
from pipeline.lanes.events import LaneWaited
from pipeline.markers.commit_marker import CommitMarker
from pipeline.spark.run.lane_forks import new_forks
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_inputs import LaneInputs
from pipeline.spark.run.lane_planner import LanePlanner
from pipeline.spark.run.lane_settings import LaneSettings


class LaneWaits:
    """Measures the waits of a lane for its external inputs, and runs its forks, if it may have any.

    Args:
        settings: of the lane.
        host: of its node.
        planner: of the lane.
    """

    def __init__(self, settings: LaneSettings, host: LaneHost, planner: LanePlanner) -> None:
        self._settings = settings
        self._host = host
        self._planner = planner
        self._forks = new_forks(settings, host, planner)
        self._watch = Watch(WATCHED_MS)
        self._waits = Waits(steady_ms(host.clock))
        self._reported: UsualWaits | None = None

    def begin(self, folder: Path, first: CommitMarker, inputs: LaneInputs) -> None:
        """Begin with a lane that runs in this checkpoint, and has these inputs."""
        if self._forks is not None:
            self._forks.begin(folder, first, inputs)

    def finished(self, marker: CommitMarker, elapsed_ms: int) -> None:
        """Take in a committed marker of the lane, and how long its batch took."""
        if self._forks is not None:
            self._forks.finished(marker, elapsed_ms)
        self._measure()

    def request_stop(self) -> None:
        """Publish nothing tentative any more; does not wait. Thread-safe."""
        if self._forks is not None:
            self._forks.request_stop()

    def end(self) -> None:
        """End a fork that runs, and wait for it."""
        if self._forks is not None:
            self._forks.end()

    def _measure(self) -> None:
        """Look at the lane after a batch; what is usual is reported when a minute was added."""
        observed = self._planner.observed
        if observed is None:
            return
        time, ends = observed
        if not any(isinstance(one, ExternalInput) for one in time.profile.inputs):
            return  # what is missing is missing at its writers, which measure it
        now_ms = steady_ms(self._host.clock)
        self._watch = look(self._watch, time, ends, now_ms)
        before, until_ms = self._waits, time.read_until_ms
        if until_ms is None:
            return
        self._waits = with_look(before, self._watch, held(self._watch), until_ms)
        if self._waits.minutes is before.minutes:
            return
        found = usual_waits(self._waits)
        if found is not None and found != self._reported:
            self._reported = found
            self._host.report(LaneWaited(self._settings.lane, self._settings.run, found))
