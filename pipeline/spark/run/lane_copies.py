"""Copies of the checkpoint of one lane, made while it runs: see `checkpoint_copies`."""

import logging
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import MedusaError
from pipeline.markers.commit_marker import CommitMarker
from pipeline.spark.run.checkpoint_copies import RunningCheckpoint
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_settings import LaneSettings


@dataclass(frozen=True, slots=True)
class LaneCopies:
    """Begins and ends them; without a checkpoint store, or a state, there are none.

    Args:
        settings: of the lane.
        host: of its node.
        log: of the lane.
    """

    settings: LaneSettings
    host: LaneHost
    log: "logging.LoggerAdapter[logging.Logger]"

    def begin(self, folder: Path, first: CommitMarker) -> None:
        """Let the checkpoint be copied from now on."""
        copies = self.host.copies
        if copies is not None and self.settings.fragment.stateful_box is not None:
            copies.begin(self._running(folder, first))

    def discard(self, folder: Path, marker: CommitMarker) -> None:
        """Let no start use copies of a state that cannot be read."""
        if self.host.copies is None:
            return
        try:
            self.host.copies.discard(self._running(folder, marker))
        except MedusaError as error:
            self.log.warning("copies of its checkpoint are not discarded: %s", error)

    def end(self) -> None:
        """Let nothing more be copied."""
        if self.host.copies is not None:
            self.host.copies.end(self.settings.names, self.settings.epoch)

    def _running(self, folder: Path, marker: CommitMarker) -> RunningCheckpoint:
        names, life, epoch = self.settings.names, self.settings.life, self.settings.epoch
        spark = self.host.spark.version
        return RunningCheckpoint(names, life, epoch, marker.incarnation, folder, spark)
