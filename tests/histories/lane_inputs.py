"""Inputs of a lane or a follower, read from the Kafka in memory."""

from collections.abc import Callable
from random import Random
from typing import Any, cast

from pipeline.markers.positions import Positions
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_inputs import LaneInputs
from pipeline.spark.run.lane_settings import LaneSettings
from tests.histories.kafka import Kafka
from tests.histories.looking import Beginning


class Inputs(LaneInputs):
    """Replaces the readers of Spark."""

    def __init__(self, host: LaneHost, settings: LaneSettings, rng: Callable[[], Random]) -> None:
        super().__init__(host)
        self._settings, self._rng = settings, rng

    def reader(self, begin: Positions) -> Any:
        """See `LaneInputs`."""
        kafka = cast("Kafka", self._host.kafka)
        return Beginning(begin, self._settings.fragment, kafka, self._rng)

    def again(self) -> Any:
        """See `LaneInputs`."""
        return self.reader({})
