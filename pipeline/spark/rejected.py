"""What goes to the dead letters: a record, or a result that could not be computed."""

from dataclasses import dataclass

from pipeline.ids import (
    BoxName,
    Millis,
    NetworkVersion,
    Offset,
    StreamName,
    TopicName,
)
from pipeline.lanes.dead_letters import Context, attempt_of
from pipeline.names import FragmentNames
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

    def context(self, names: FragmentNames, version: NetworkVersion) -> Context:
        """For its dead letter. What no box refused was refused by the fragment."""
        return Context(
            reason=self.why.reason.value,
            message=self.why.message,
            box=BoxName(self.why.box or names.fragment),
            input=self.input,
            port=self.port,
            topic=self.topic,
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
