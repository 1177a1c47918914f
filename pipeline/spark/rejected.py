"""What goes to the dead letters: a record, or a result that could not be computed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipeline.errors import RetryError
from pipeline.ids import (
    BoxName,
    Millis,
    NetworkVersion,
    Offset,
    StreamName,
    TopicName,
)
from pipeline.lanes.batch import UNLIKE
from pipeline.lanes.dead_letters import Context, attempt_of
from pipeline.lanes.positions import MarkedSource
from pipeline.names import FragmentNames
from pipeline.spark.functions import checksum
from pipeline.spark.hidden import Reason
from pipeline.spark.reasons import Why, failed


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that could not be processed, byte for byte, and why."""

    input: StreamName
    port: str
    """The path in which it failed; empty: in all of them, since it could not be judged at all."""
    why: Why
    topic: TopicName
    partition: int
    offset: Offset
    timestamp_ms: Millis
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    def context(
        self, names: FragmentNames, version: NetworkVersion, sources: Iterable[MarkedSource]
    ) -> Context:
        """For its dead letter. What no box refused was refused by the fragment.

        `sources`: of the lane, one of which read it.
        """
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


def check_decided_alike(failed: Mapping[str, int], rejected: Iterable[Rejected]) -> None:
    """Make sure that the functions of users have refused the same records twice.

    Args:
        failed: see `BatchFacts`: what failed when the batch was computed.
        rejected: what was found when it was looked at again.

    Raises:
        RetryError: they have not; nothing was written.
    """
    again = dict.fromkeys(failed, 0)
    for one in rejected:
        if one.port in again and one.why.reason is Reason.EVALUATION_FAILED:
            again[one.port] += checksum(one.topic, one.partition, one.offset)
    if again != dict(failed):
        raise RetryError(
            "a function failed for other records when it was called again",
            hint=UNLIKE,
        )


def failed_result(reason: str, timestamp_ms: Millis, version: NetworkVersion) -> Context:
    """For the dead letter of a result, which no single record stands for."""
    why = failed(reason)
    return Context(
        reason=why.reason.value,
        message=why.message,
        box=BoxName(why.box),
        input=None,
        port="",
        topic=None,
        partition=None,
        offset=None,
        timestamp_ms=timestamp_ms,
        version=version,
        field=why.field,
    )
