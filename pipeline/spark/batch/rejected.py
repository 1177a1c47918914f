"""Rejected records, which become dead letters, and checks of their consistency. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from pipeline.errors import BrokenInvariantError, RetryError
from pipeline.ids import (
    BoxName,
    Millis,
    NetworkVersion,
    Offset,
    StreamName,
    TopicName,
)
from pipeline.lanes.batch import UNLIKE
from pipeline.lanes.dead_letter_reasons import LATENESS, Reason
from pipeline.lanes.dead_letters import Context, DeadLetter, attempt_of
from pipeline.lanes.result_headers import LATE_RESULT
from pipeline.markers.commit_marker import CHECKSUM_BYTES, CHECKSUMS
from pipeline.markers.positions import MarkedSource
from pipeline.names import FragmentNames
from pipeline.spark.query.checksums import checksum
from pipeline.spark.query.reasons import Why


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that could not be processed, byte for byte, with the reason."""

    input: StreamName
    port: str
    """The path on which it failed; empty: on all, since it is unfit before any path."""
    why: Why
    topic: TopicName
    partition: int
    offset: Offset
    timestamp_ms: Millis
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    def letter(
        self, names: FragmentNames, version: NetworkVersion, sources: Iterable[MarkedSource]
    ) -> DeadLetter:
        """Its dead letter; without a refusing box, the box is the fragment's.

        `sources`: of the lane.
        """
        context = self._context(names, version, sources)
        return DeadLetter(context, self.key, self.value, self.headers)

    def _context(
        self, names: FragmentNames, version: NetworkVersion, sources: Iterable[MarkedSource]
    ) -> Context:
        source = next(one for one in sources if one.name == self.input)
        return Context(
            reason=self.why.reason.value,
            message=self.why.message,
            box=BoxName(self.why.box or names.fragment),
            input=self.input,
            port=self.port,
            source=source.id,
            topic=self.topic,
            topic_id=dict(source.topics)[self.topic],
            partition=self.partition,
            offset=self.offset,
            timestamp_ms=self.timestamp_ms,
            version=version,
            field=self.why.field or None,
            schema=self.why.schema,
            event_time_ms=self.why.event_time_ms,
            closed_ms=self.why.closed_ms,
            attempt=attempt_of(self.headers) if self.topic == names.redrive else 1,
        )


def refused_checksum(rejected: Iterable[Rejected]) -> int:
    """Checksum of the refused records with path and reason, independent of their order."""
    total = 0
    for one in rejected:
        place = f"{one.topic}/{one.partition}/{one.offset}/{one.port}/{one.why.reason.value}"
        total += int.from_bytes(blake2b(place.encode(), digest_size=CHECKSUM_BYTES).digest())
    return total % CHECKSUMS


def check_decided_alike(
    failed: Mapping[str, int],
    rejected: Iterable[Rejected],
    boxes: Mapping[str, tuple[BoxName, ...]],
) -> None:
    """Check that user functions refused the same records in both executions.

    Args:
        failed: see `BatchFacts`: checksums of the first execution.
        rejected: found by inspection.
        boxes: path → the boxes on it that call functions, for the error.

    Raises:
        RetryError: they did not; nothing was written.
    """
    again = dict.fromkeys(failed, 0)
    for one in rejected:
        if one.port in again and one.why.reason is Reason.EVALUATION_FAILED:
            again[one.port] += checksum(one.topic, one.partition, one.offset)
    unlike = [path for path, total in failed.items() if again[path] != total]
    if unlike:
        raise RetryError(
            "a function failed for other records when it was called again",
            place=of_functions(boxes, unlike),
            hint=UNLIKE,
        )


def check_late(rejected: Iterable[Rejected], place: str, *, dropped: bool) -> None:
    """Check that the query and the inspection both find late records, or both find none.

    A row that the query dropped without a dead letter would be lost; one with a dead letter that it
    did not drop would count twice.

    Args:
        rejected: found by inspection.
        place: names the fragment, for the error.
        dropped: whether the query dropped rows as late.

    Raises:
        BrokenInvariantError: they differ; nothing was written.
    """
    late = [one for one in rejected if one.why.reason.value in LATENESS]
    if dropped is bool(late):
        return
    one = late[0] if late else None
    raise BrokenInvariantError(
        "rows of a batch were dropped as late, and a second look finds no late record in it"
        if one is None
        else f"the record at topic {one.topic}, partition {one.partition}, offset {one.offset} is "
        "late, and no row of its batch was dropped",
        place=place,
        hint="nothing of the batch was published; keep topics and checkpoints, and report this",
    )


def check_in_time(
    rejected: Iterable[Rejected],
    derived: Iterable[MarkedSource],
    promised: Callable[[StreamName], Millis | None],
) -> None:
    """Check that no record of a derived stream is late by its writer's own promise.

    It may be late in other cases: other inputs moved event time while the stream was idle; its time
    was settled under another plan, or before its source was first read; its writer is stateless and
    forwarded it marked as late; or it was redriven.

    Args:
        rejected: found by inspection.
        derived: the derived sources.
        promised: the boundary of a stream in effect before the batch; None: none was.

    Raises:
        BrokenInvariantError: one is late; nothing was written.
    """
    known = {(source.name, source.topics[0][0]): source for source in derived}
    for record in rejected:
        source = known.get((record.input, record.topic))
        marked = any(name == LATE_RESULT for name, _ in record.headers)
        if source is None or marked or record.why.reason.value not in LATENESS:
            continue
        at_ms = record.why.event_time_ms
        if at_ms is None or not _may_be_late(at_ms, source, promised(record.input)):
            raise BrokenInvariantError(
                f"a record of the derived stream {record.input} was late",
                place=f"topic {record.topic}, partition {record.partition}, offset {record.offset}",
                hint="its writer broke its boundary; the fragment is stopped so that no wrong "
                "result is published",
            )


def _may_be_late(at_ms: Millis, source: MarkedSource, boundary_ms: Millis | None) -> bool:
    settled = (source.skipped_ms, source.settled_ms)
    if any(ms is not None and at_ms <= ms for ms in settled):
        return True
    return boundary_ms is None or at_ms > boundary_ms


def of_functions(boxes: Mapping[str, tuple[BoxName, ...]], paths: Iterable[str]) -> str:
    """The boxes with functions on some paths, as the place of an error.

    Args:
        boxes: path → its boxes that call functions.
        paths: names of paths.
    """
    names = dict.fromkeys(box for path in paths for box in boxes.get(path, ()))
    return f"box {', '.join(names)}" if names else ""
