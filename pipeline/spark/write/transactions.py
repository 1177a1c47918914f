"""Writing in Kafka transactions."""

from collections.abc import Callable
from typing import Final

from brokers.records import Headers
from pipeline.clock import Deadline
from pipeline.errors import FencedError
from pipeline.lanes.dead_letters import DeadLetter, headers
from pipeline.lanes.result_headers import WRITTEN_TO
from pipeline.markers import codec
from pipeline.markers.commit_marker import CommitMarker
from pipeline.spark.write.outgoing import Outgoing, OutgoingResults
from pipeline.spark.write.result_records import with_headers
from pipeline.spark.write.sink_context import SinkContext

ABORT_DEADLINE_S: Final = 60.0
MARKER_KEY = b"marker"


class InTransactions:
    """A `BatchWriter` with one transaction for each call; the marker is its last record."""

    cuts = False

    def __init__(self, context: SinkContext) -> None:
        self._context = context
        self._own: Headers = ((WRITTEN_TO, context.output_id.encode()),)
        self._undecided = False

    @property
    def undecided(self) -> bool:
        """Whether a transaction was begun, and is not known to be committed."""
        return self._undecided

    def write(self, outgoing: Outgoing, check: Callable[[], None], deadline: Deadline) -> None:
        """Write in a transaction; it is aborted if that fails, unless it is fenced."""
        clock, writer = self._context.clock, self._context.writer
        writer.begin()
        self._undecided = True
        try:
            for letter in outgoing.letters:
                self._send_letter(letter)
            if outgoing.results is not None:
                self._send_results(outgoing.results)
            self._send_marker(outgoing.marker)
            check()
            writer.commit(deadline)
        except FencedError:
            raise
        except Exception:
            writer.abort(Deadline.after(clock, ABORT_DEADLINE_S, "aborting a transaction"))
            raise
        self._undecided = False

    def _send_letter(self, letter: DeadLetter) -> None:
        names = self._context.fragment.names
        self._context.writer.send(
            names.dead_letters,
            letter.key,
            letter.value,
            timestamp_ms=letter.context.timestamp_ms,
            headers=headers(names, letter.context, letter.original),
        )

    def _send_results(self, results: OutgoingResults) -> None:
        fragment, writer = self._context.fragment, self._context.writer
        if fragment.identified or results.late_ms is not None or results.again is not None:
            self._send_marked(results)
        else:
            records = results.results.records(results.partitions)
            writer.send_many(fragment.output.topic, records, self._own)

    def _send_marked(self, results: OutgoingResults) -> None:
        """Send results with their ids, if any, and with the mark of late ones."""
        topic, writer = self._context.fragment.output.topic, self._context.writer
        for (key, value, timestamp_ms, partition), marks in with_headers(results, self._own):
            writer.send(
                topic,
                key,
                value,
                timestamp_ms=timestamp_ms,
                headers=marks,
                partition=partition,
            )

    def _send_marker(self, marker: CommitMarker) -> None:
        self._context.writer.send(
            self._context.fragment.names.markers,
            MARKER_KEY,
            codec.encode_marker(marker),
            timestamp_ms=marker.written_at_ms,
            partition=0,
        )
