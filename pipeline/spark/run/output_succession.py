"""Start of a lane on an output topic that another fragment wrote last.

It fences the earlier writers, then reads their promises for the topic. This is not the failover of
a fragment from one node to another.
"""

import logging
from dataclasses import dataclass, replace
from typing import Final

from brokers.kafka_interface import KafkaCluster, NoSuchTopicError
from brokers.log_reader import LogReader
from brokers.records import KafkaRecord
from pipeline.clock import Clock, Deadline
from pipeline.errors import BrokenInvariantError, RefusedError
from pipeline.ids import FragmentId, Offset
from pipeline.lanes.output_succession import (
    Succession,
    left_by,
    positions_anew,
    sources_anew,
    takeover_marker,
    with_positions,
)
from pipeline.lanes.source_ids import carry, planned_sources, sources_after
from pipeline.markers import codec
from pipeline.markers.commit_marker import CommitMarker, LeftOutput
from pipeline.markers.positions import InputPartition, MarkedSource
from pipeline.markers.signals import BoundaryRecord, is_activity
from pipeline.names import FragmentNames, boundaries_topic
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.carried import CarriedMarker, held
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.spark.run.last_marker import settled_marker
from pipeline.spark.run.schema_resolver import SchemaResolver

_log = logging.getLogger(__name__)

DEADLINE_S: Final = 60.0
_SIGNALS: Final = 100_000
"""Number of the newest records that are read. The topic keeps the last boundary of each writer; the
idle reports of a writer, one per second, exceed this only if nothing is compacted for a day."""


@dataclass(frozen=True, slots=True)
class OtherWriters:
    """The other writers of a topic, at most one of which may still run."""

    kafka: KafkaCluster
    resolver: SchemaResolver
    clock: Clock

    def stop(
        self, settings: LaneSettings, succession: Succession, last: CommitMarker | None
    ) -> LeftOutput:
        """Fence those that may still write the topic, and read their promises and positions.

        Those that are gone are fenced in any case: one of them may be about to start in an earlier
        version. One that is deployed to write another topic is fenced unless its last marker
        already names that topic; it restarts. Records that the lane's own fragment read before this
        deploy reached it are included.

        Raises:
            NotNowError: a transaction of one of them is open.
            UnavailableError: Kafka does not answer.
        """
        network = settings.fragment.names.network
        found: list[CommitMarker | None] = []
        for name in (*succession.gone, *succession.moved):
            names = FragmentNames(FragmentId(network, name))
            if self.resolver.admin.describe((names.markers,)):  # else its topics were deleted
                found.append(self._last(names, succession, gone=name in succession.gone))
        markers = (one for one in (*found, last) if one is not None)
        return left_by(succession.output, markers, self._boundaries(settings))

    def _last(
        self, names: FragmentNames, succession: Succession, *, gone: bool
    ) -> CommitMarker | None:
        """The last marker of one of them, once it no longer writes the topic."""
        if not gone:
            last = settled_marker(self.kafka, self.resolver.admin, names)
            if last is None or last.output != succession.output:
                return last
        self._fence(names)
        return settled_marker(self.kafka, self.resolver.admin, names)

    def _fence(self, names: FragmentNames) -> None:
        writer = self.kafka.transactions(names.stable.transactional_id)
        try:
            writer.start(Deadline.after(self.clock, DEADLINE_S, f"stopping {names.fragment}"))
        finally:
            writer.close()

    def _boundaries(self, settings: LaneSettings) -> list[BoundaryRecord]:
        topic = boundaries_topic(settings.fragment.output.topic)
        try:
            records = LogReader(self.kafka, DEADLINE_S).newest(topic, _SIGNALS)
        except NoSuchTopicError:
            return []
        found = (boundary_of(record) for record in records if not is_activity(record.key))
        return [boundary for boundary in found if boundary is not None]


def boundary_of(record: KafkaRecord) -> BoundaryRecord | None:
    """Decode a boundary; None if the record is not one, since another program wrote it."""
    if record.value is None:
        return None
    place = f"topic {record.topic}, partition {record.partition}, offset {record.offset}"
    try:
        return codec.decode_boundary(record.value, place)
    except BrokenInvariantError as error:
        _log.warning("a record that is no boundary is passed over: %s", error)
        return None


@dataclass(frozen=True, slots=True)
class Takeover:
    """Start of a lane that begins anew.

    Args:
        settings: of the lane.
        succession: the takeover, as decided by its deploy.
        own: its last marker, under the names of its plan; None: it has never run.
        left: promise and positions of the others, once they are stopped, with its own promises.
        sources: its sources, with new ids.
        resolver: reads positions.
    """

    settings: LaneSettings
    succession: Succession
    own: CommitMarker | None
    left: LeftOutput
    sources: tuple[MarkedSource, ...]
    resolver: SchemaResolver

    @property
    def nothing(self) -> CarriedMarker:
        """The sources of the lane, without a marker."""
        return CarriedMarker(None, self.sources)

    def positions(self, lowered: Lowered) -> dict[InputPartition, Offset]:
        """Begin positions in every topic that it reads."""
        begins = held(self.settings.begins, self.sources, self.resolver.admin)
        anew = positions_anew(self.sources, begins, self.left)
        own = self.own.end if self.own is not None else {}
        return with_positions(self.resolver.start_positions(lowered), own, anew)

    def at(self, first: CommitMarker) -> CarriedMarker:
        """Marker and sources that it starts from.

        Args:
            first: marker of a first start.
        """
        marker = takeover_marker(first, self.own, self.left, self.succession.token)
        return CarriedMarker(marker, marker.sources, written=marker, anew=True)


def begin_takeover(
    settings: LaneSettings, succession: Succession, last: CommitMarker | None, others: OtherWriters
) -> Takeover:
    """Stop the other writers, and compute where a lane begins anew.

    Args:
        settings: of the lane.
        succession: the takeover, as decided by its deploy.
        last: its last marker; None: it has never run.
        others: the other writers of its output.

    Raises:
        RefusedError: one of its streams has no decided begin. NotNowError: a transaction of one of
        the others is open. UnavailableError: Kafka does not answer.
    """
    planned = planned_sources(settings.fragment, settings.topic_ids)
    own = carry(last.with_output(succession.output), planned).marker if last is not None else None
    known = sources_after(planned, last)
    for name in (source.name for source in known if source.name not in settings.begins):
        raise RefusedError(
            f"another fragment has written topic {settings.fragment.output.topic}, and no deploy "
            f"has decided where stream {name} begins",
            place=settings.place,
            hint=f"deploy with `--input {name}=beginning` or `--input {name}=end`; `medusa plan` "
            "says what either means.",
        )
    left = others.stop(settings, succession, last)
    ends_ms = (left.promised_ms, own.boundary_ms if own is not None else None)
    left = replace(left, promised_ms=max((ms for ms in ends_ms if ms is not None), default=None))
    sources = sources_anew(known, settings.begins, left)
    return Takeover(settings, succession, own, left, sources, others.resolver)
