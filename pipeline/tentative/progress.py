"""Progress of a generation, in its tentative topic: what the forks of its readers go by.

A record without key and value, one in each partition, with the headers `medusa.topic`,
`medusa.generation` and `medusa.progress`: decimal numbers of milliseconds, separated by spaces.

    PARTITIONS BEGINS COMPLETE EVENT:HELD ...

All results of the generation above BEGINS and up to COMPLETE are before it; both are -1 as long as
nothing is published. The writer has held back its boundary EVENT for HELD.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from brokers.records import Headers, KafkaRecord
from pipeline.boundaries.deadline import Watch
from pipeline.boundaries.promise import promise, watermark_for
from pipeline.ids import Millis, SteadyMillis, TopicId
from pipeline.lanes.result_headers import GENERATION, PROGRESS, WRITTEN_TO
from pipeline.network.boxes.shape import Shape
from pipeline.tentative.generation import Generation, read

NOTHING_MS: Final = Millis(-1)
_TEXT: Final = re.compile(rb"[0-9]{1,9}( (-1|[0-9]{1,19})){2}( [0-9]{1,19}:[0-9]{1,19})*")


@dataclass(frozen=True, slots=True)
class HeldBoundary:
    """A boundary of the stable output that is held back, and for how long it is."""

    event_ms: Millis
    held_ms: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a generation is.

    Args:
        generation: it.
        partitions: of the topic.
        begins_ms: its results are complete above this event time.
        complete_ms: and up to this one.
        held: what is held back, in order.
    """

    generation: Generation
    partitions: int
    begins_ms: Millis = NOTHING_MS
    complete_ms: Millis = NOTHING_MS
    held: Sequence[HeldBoundary] = ()

    def headers(self, topic_id: TopicId) -> Headers:
        """The headers of its records; `topic_id`: Kafka's id of the stable topic."""
        numbers = f"{self.partitions} {self.begins_ms} {self.complete_ms}"
        text = " ".join((numbers, *(f"{one.event_ms}:{one.held_ms}" for one in self.held)))
        return (
            (WRITTEN_TO, topic_id.encode()),
            (GENERATION, self.generation.encode()),
            (PROGRESS, text.encode()),
        )


def held_boundaries(watch: Watch, shape: Shape, now_ms: SteadyMillis) -> tuple[HeldBoundary, ...]:
    """What a lane holds back, as boundaries of its output.

    Args:
        watch: of the lane.
        shape: what it computes.
        now_ms: steady time.
    """
    found = (
        (_boundary_ms(shape, one.event_ms), max(0, now_ms - one.since_ms)) for one in watch.moments
    )
    return tuple(HeldBoundary(at_ms, held_ms) for at_ms, held_ms in found if at_ms is not None)


def _boundary_ms(shape: Shape, event_ms: Millis) -> Millis | None:
    """The boundary of the output when an event time is in force."""
    eviction_ms = watermark_for(shape, event_ms)
    return promise(shape, eviction_ms=eviction_ms, passed_ms=event_ms, previous_ms=None)


def progress_of(record: KafkaRecord, topic_id: TopicId) -> Progress | None:
    """Read the progress in a record of a tentative topic; None: there is none.

    Args:
        record: as it was read.
        topic_id: Kafka's id of the present stable topic.
    """
    headers: Mapping[str, bytes | None] = dict(record.headers)
    text, generation = headers.get(PROGRESS) or b"", read(headers.get(GENERATION))
    own = headers.get(WRITTEN_TO) == topic_id.encode()
    if not own or generation is None or not _TEXT.fullmatch(text):
        return None
    partitions, begins, complete, *held = text.split(b" ")
    pairs = (one.split(b":") for one in held)
    return Progress(
        generation,
        int(partitions),
        Millis(int(begins)),
        Millis(int(complete)),
        tuple(HeldBoundary(Millis(int(event)), int(for_ms)) for event, for_ms in pairs),
    )
