"""Writing of a lane with rollback recovery: results first, everything else in a transaction.

A result is visible as soon as the brokers have it. If the lane fails before its transaction is
committed, the batch is executed again, and its results are written again, with the same ids. The
batch was cut before, under the lane's transactional id: so a lane that was fenced meanwhile can
only write results of a batch that its successor writes too.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from brokers.kafka_interface import RecordWriter
from brokers.records import Headers
from pipeline.clock import Deadline
from pipeline.errors import BrokenInvariantError
from pipeline.ids import Millis
from pipeline.lanes.result_headers import WRITTEN_TO
from pipeline.spark.write.outgoing import BatchWriter, Outgoing, OutgoingResults
from pipeline.spark.write.result_records import with_headers
from pipeline.spark.write.sink_context import SinkContext

DELIVERY_DEADLINE_S: Final = 60.0


class ResultsFirst:
    """A `BatchWriter` whose results are visible before their marker.

    Args:
        context: of the lane.
        rest: writes everything else.
        connect: opens a producer of results.
    """

    cuts = True

    def __init__(
        self, context: SinkContext, rest: BatchWriter, connect: Callable[[], RecordWriter]
    ) -> None:
        self._context = context
        self._rest = rest
        self._connect = connect
        self._own: Headers = ((WRITTEN_TO, context.output_id.encode()),)
        self._producer: RecordWriter | None = None
        self._partitions = 0

    @property
    def undecided(self) -> bool:
        """Whether a transaction was begun, and is not known to be committed."""
        return self._rest.undecided

    def write(self, outgoing: Outgoing, check: Callable[[], None], deadline: Deadline) -> None:
        """Write the results, wait until the brokers have them, and then write the rest.

        Raises:
            FencedError, RetryError, UnavailableError, RefusedError: as by a transaction; but some
            of the results may be visible.
        """
        results = outgoing.results
        if results is not None and results.results.table.num_rows:
            if results.again is None:
                raise BrokenInvariantError("results are about to be written before their cut")
            check()
            self._send(results, deadline)
        self._rest.write(replace(outgoing, results=None), check, deadline)

    def close(self) -> None:
        """Close the connection; what is not delivered is written by a repetition."""
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def _send(self, results: OutgoingResults, deadline: Deadline) -> None:
        topic, producer = self._context.fragment.output.topic, self._connected(results.partitions)
        for (key, value, timestamp_ms, partition), headers in with_headers(results, self._own):
            producer.send(
                topic,
                key,
                value,
                headers=headers,
                timestamp_ms=Millis(timestamp_ms),
                partition=partition,
            )
        producer.flush(deadline.remaining_s())

    def _connected(self, partitions: int) -> RecordWriter:
        """The producer; a new one for more partitions, which the driver notices late."""
        if self._producer is not None and partitions > self._partitions:
            self.close()
        if self._producer is None:
            self._producer, self._partitions = self._connect(), partitions
        return self._producer
