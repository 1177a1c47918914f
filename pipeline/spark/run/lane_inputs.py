"""The plan of a lane as Spark runs it, with the schemas that it has met; readers of its inputs."""

import logging
from collections.abc import Callable
from functools import partial

from pipeline.errors import RetryError
from pipeline.ids import SchemaHandle
from pipeline.markers.positions import MarkedSource, Positions
from pipeline.spark.batch.unknown_schemas import UnknownSchemasError
from pipeline.spark.query.lower import lower
from pipeline.spark.query.lowered import Lowered, restricted
from pipeline.spark.query.readers import (
    STREAM_OPTIONS,
    KafkaReader,
    RangeReader,
    Ranges,
    Reader,
    read_options,
    starting_at,
)
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_settings import LaneSettings
from schemas.wire import prefix

_log = logging.getLogger(__name__)


class LaneInputs:
    """Lowers a lane's plan, and reads its inputs. Not thread-safe.

    Args:
        host: of its node.
    """

    def __init__(self, host: LaneHost) -> None:
        self._host = host
        self._met: tuple[SchemaHandle, ...] = ()
        self.latest: Lowered | None = None
        """The plan of the last round."""

    def copy(self) -> "LaneInputs":
        """Another one, for another query, with the same schemas and the plan of the last round."""
        found = LaneInputs(self._host)
        found._met, found.latest = self._met, self.latest
        return found

    def lowered(self, settings: LaneSettings, sources: tuple[MarkedSource, ...]) -> Lowered:
        """The plan with all schemas that were met, and all present partitions."""
        resolver, topic_ids = self._host.resolver, settings.topic_ids
        found = resolver.resolve(settings.fragment, topic_ids, self._met, sources)
        return lower(settings.fragment, found)

    def with_schemas(
        self,
        again: Callable[[], Lowered],
        label: str,
        lowered: Lowered,
        read: Positions,
        run: Callable[[Lowered], None],
    ) -> Lowered:
        """Run, and run again with each new schema that a batch contains.

        Args:
            again: lowers the plan again.
            label: names the fragment in the log.
            lowered: the plan to begin with.
            read: the partitions that all rounds read, also if a topic got more meanwhile.
            run: a round.
        """
        while True:
            self.latest = lowered
            try:
                run(lowered)
            except UnknownSchemasError as error:
                if set(error.handles) <= set(self._met):
                    raise RetryError(f"{error.message}: they were looked up before") from error
                _log.info("%s: planning again", error.message, extra={"fragment": label})
                self._met = tuple(sorted({*self._met, *error.handles}, key=prefix))
                lowered = restricted(again(), read)
            else:
                return lowered

    def reader(self, begin: Positions) -> KafkaReader:
        """A reader of the inputs as streams, from these positions on."""
        options = {**self._options(), **STREAM_OPTIONS}
        return KafkaReader(self._host.spark, options, starting_at(begin))

    def again(self) -> Callable[[Ranges], Reader]:
        """Returns readers of ranges of the inputs, for inspection."""
        return partial(RangeReader, self._host.spark, self._options())

    def _options(self) -> dict[str, str]:
        return read_options(self._host.brokers)
