"""A passive standby: has the newest copy of a lane's checkpoint on this node.

It executes nothing. A lane that starts here takes the folder as it does that of a follower, and
reads what came since from the log.
"""

import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pipeline.catalog.records import FragmentRecord
from pipeline.checkpoint_store.manifest import CheckpointCopy
from pipeline.checkpoint_store.store import CheckpointStore
from pipeline.errors import EnvironmentProblem, MedusaError
from pipeline.ids import NodeId
from pipeline.lanes.follower_phases import (
    FollowerCourse,
    FollowerEvent,
    FollowerPhase,
    Reached,
)
from pipeline.lanes.following import NotToFollowError
from pipeline.markers.commit_marker import CommitMarker
from pipeline.spark.run.checkpoint_fetch import Wanted, fetch
from pipeline.spark.run.checkpoints import Checkpoints, FollowerFolder
from pipeline.spark.run.handover import FollowedQuery, FollowedState
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.spark.run.last_marker import read_marker
from pipeline.spark.run.query_runner import StoppingError

OLD: Final = 3
"""A copy is too old if the lane has gone on since for more than so many intervals."""
LOOKS: Final = 4
"""How often it looks for a new copy, in each interval."""
LOOK_MOST_S: Final = 5.0
WATCH_S: Final = 0.5

_log = logging.getLogger(__name__)


class CopiedStandby:
    """Keeps the newest copy of one lane's checkpoint until it is stopped. Single use.

    Args:
        settings: of the lane that would start here now.
        watch: called about twice a second; an error from it ends the standby.
        course: its phase; begun.
        record: of the fragment in the catalog.
        host: of its node.
        node: its name.
    """

    def __init__(
        self,
        settings: LaneSettings,
        watch: Callable[[], None],
        course: FollowerCourse,
        record: FragmentRecord,
        *,
        host: LaneHost,
        node: NodeId,
    ) -> None:
        self._settings = settings
        self._watch = watch
        self._course = course
        self._every_ms = record.checkpoint_every_ms
        self._host = host
        self._node = node
        self._stop = threading.Event()
        self._swap = threading.Lock()
        self._copy: CheckpointCopy | None = None
        self._folder: Path | None = None
        self._label = {"fragment": str(settings.lane.fragment)}
        self.problem = ""
        self.reached = Reached()

    def request_stop(self) -> None:
        """Return from `run` soon. Thread-safe."""
        with self._swap:
            self._stop.set()

    @property
    def followed(self) -> FollowedState | None:
        """The copy that it has; None: it has none. After `request_stop` it stays the same.

        Also while `run` has not returned: a folder that is mounted may hang.
        """
        with self._swap:
            if self._folder is None or self._copy is None:
                return None
            return FollowedState(self._folder, self._copy.incarnation, self._settings.version)

    def hand_over(
        self, settings: LaneSettings, last: CommitMarker, stop: threading.Event
    ) -> FollowedQuery | None:
        """None: it runs no query."""
        del settings, last, stop
        return None

    def discard(self) -> None:
        """Remove what it has left, once `run` has returned."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def run(self) -> None:
        """Keep the newest copy; returns after `request_stop`.

        What it has is kept while the store or Kafka cannot be used.
        """
        try:
            while not self._stop.is_set():
                self._look_or_wait()
                self._wait(min(LOOK_MOST_S, self._every_ms / 1_000 / LOOKS))
        except StoppingError:
            return

    def _look_or_wait(self) -> None:
        """Look for a copy; note why it cannot."""
        try:
            self._look()
        except MedusaError as error:
            level = logging.DEBUG if self.problem else logging.WARNING
            _log.log(level, "no copy of its checkpoint is fetched: %s", error, extra=self._label)
            self.problem = str(error)
            if self._course.phase in {FollowerPhase.FOLLOWING, FollowerPhase.LEVEL}:
                self._course.move(FollowerEvent.FELL_BEHIND)
        else:
            self.problem = ""

    def _wait(self, seconds: float) -> None:
        clock = self._host.clock
        until_s = clock.monotonic_s() + seconds
        while not self._stop.wait(min(WATCH_S, max(0.0, until_s - clock.monotonic_s()))):
            self._watch()
            if clock.monotonic_s() >= until_s:
                return

    def _look(self) -> None:
        """Fetch the newest copy, if this node has another one; judge how old it is."""
        settings, copies = self._settings, self._host.copies
        if settings.fragment.stateful_box is None:
            self._has_nothing_to_copy()
            return
        if copies is None:
            raise EnvironmentProblem(
                "this node has no checkpoint store, so it cannot stand by",
                place="store.url",
                hint="set store.url to the folder or the bucket that all nodes use",
            )
        marker = read_marker(self._host.kafka, settings.fragment.names)
        if marker is None:
            raise NotToFollowError("the fragment has not run yet", place=settings.place)
        if marker.nothing_read:
            self._has_nothing_to_copy()
            return
        if self._course.phase is FollowerPhase.WAITING:  # it has a state now
            self._course.move(FollowerEvent.FAILED)
            self._course.move(FollowerEvent.BEGUN)
        wanted = Wanted.of(settings, marker, self._host.spark.version)
        copy = wanted.newest(copies.store)
        if copy is not None and copy != self._copy:
            self._fetch(copies.store, copy)
        self._judge(marker)

    def _fetch(self, store: CheckpointStore, copy: CheckpointCopy) -> None:
        """Fetch a copy into a folder of its own; what the last one has already is linked."""
        settings, host, last, old = self._settings, self._host, self._copy, self._folder
        names, spark = settings.fragment.names.stable, host.spark.version
        own = FollowerFolder.new(self._node, settings.epoch)
        checkpoints = Checkpoints(host.checkpoints, names, settings.life, spark, follower=own)
        folder, have = checkpoints.folder(settings.epoch), dict[str, Path]()
        if last is not None and old is not None:
            have = {one.sha256: old / one.path for one in last.files}
        fetch(store, names, copy, folder, have, self._check)
        with self._swap:
            if self._stop.is_set():
                shutil.rmtree(folder, ignore_errors=True)
                raise StoppingError
            self._copy, self._folder = copy, folder
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)
        text = "has a copy of the checkpoint of batch %d, %d bytes"
        _log.debug(text, copy.batch, copy.size, extra=self._label)

    def _has_nothing_to_copy(self) -> None:
        if self._course.phase is FollowerPhase.BUILDING:
            self._course.move(FollowerEvent.NOTHING_TO_BUILD)

    def _check(self) -> None:
        if self._stop.is_set():
            raise StoppingError

    def _judge(self, marker: CommitMarker) -> None:
        """Level: the copy is that of the last batch, or a young one."""
        copy, course = self._copy, self._course
        same = copy is not None and copy.incarnation == marker.incarnation
        if copy is None or not same:
            self.reached = Reached()
            if course.phase in {FollowerPhase.FOLLOWING, FollowerPhase.LEVEL}:
                course.move(FollowerEvent.FELL_BEHIND)
            return
        age_ms = marker.written_at_ms - copy.written_at_ms  # both by the clock of the owner
        has_all = copy.batch >= marker.batch
        self.reached = Reached(None if has_all else copy.written_at_ms, copy.size)
        is_new = has_all or age_ms <= OLD * self._every_ms
        if course.phase is FollowerPhase.BUILDING or (
            is_new and course.phase is FollowerPhase.CATCHING_UP
        ):
            course.move(FollowerEvent.BUILT)
        if is_new and not course.is_level:
            course.move(FollowerEvent.REPEATED_ALL)
        elif not is_new and course.phase is not FollowerPhase.CATCHING_UP:
            course.move(FollowerEvent.FELL_BEHIND)
