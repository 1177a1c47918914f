"""Records that retention removes before fragments have used them: by report, or by their markers.

A node reports them for the lanes that it has; for a fragment that runs nowhere, they are computed
from its last commit marker, or from the beginnings that a deploy has decided.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from brokers.kafka_interface import NoSuchTopicError, TopicAdmin
from brokers.log_reader import LogReader
from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.catalog.records import FragmentRecord, NodeRecord
from pipeline.clock import Clock, Deadline
from pipeline.deploy.writers import pending_succession
from pipeline.ids import FragmentId, NetworkId, NetworkLife, Offset, TopicId, TopicName
from pipeline.lanes.expiring import (
    ExpiringRecords,
    LogNeeds,
    TopicNeeds,
    needs_of,
    needs_of_rebuild,
)
from pipeline.lanes.expiry import find_expiring
from pipeline.markers.codec import decode_marker
from pipeline.markers.commit_marker import CommitMarker
from pipeline.names import FragmentNames

MARKERS: Final = 200
"""The speed of event time is measured over so many batches: twenty seconds of short ones."""


def reported_expiring(
    status: FragmentStatus | None, nodes: Iterable[NodeRecord]
) -> tuple[ExpiringRecords, ...] | None:
    """The records that the node of a fragment reports; None: it does not report them.

    A running fragment whose node has not examined its topics is not behind.
    """
    if status is None or not any(status.is_of(node) for node in nodes):
        return None
    if status.expiring is None and status.state is LaneState.RUNNING:
        return ()
    return status.expiring


@dataclass(frozen=True, slots=True)
class Search:
    """Search in Kafka for the records that fragments without a lane need.

    Args:
        topics: settings and ranges of topics.
        log: reads commit markers.
        clock: of ages and of the deadline.
        within_s: after that time no further fragment is examined.
    """

    topics: TopicAdmin
    log: LogReader
    clock: Clock
    within_s: float

    def of(
        self,
        fragments: Sequence[tuple[FragmentRecord, FragmentStatus | None]],
        life: Callable[[NetworkId], NetworkLife | None],
    ) -> Mapping[FragmentId, tuple[ExpiringRecords, ...]]:
        """The records that are removed soon, or were removed, by examined fragment.

        Args:
            fragments: each with its last report.
            life: returns the life of a network; None: it is not deployed.

        Raises:
            MedusaError: Kafka does not answer, or may not be asked.
        """
        deadline = Deadline.after(self.clock, self.within_s, "examining the retention of topics")
        ids = [FragmentId(record.network, record.fragment) for record, _ in fragments]
        topics = [FragmentNames(one).markers for one in ids]
        found: dict[FragmentId, tuple[ExpiringRecords, ...]] = {}
        with closing(self.log.last_records(topics)) as last:
            for one, (record, status), topic in zip(ids, fragments, topics, strict=True):
                if deadline.passed:
                    break
                marked = next(last)
                value = None if marked is None else marked.value
                marker = None if value is None else decode_marker(value, f"topic {topic}")
                needs = needs_at_rest(record, life(record.network), marker)
                if status is not None and status.state is LaneState.RUNNING:
                    needs = needs.not_before(status.reported_at_ms)
                found[one] = find_expiring(self.topics, needs, self.clock.now_ms())
        return found

    def of_running(
        self, fragments: Sequence[FragmentRecord]
    ) -> Mapping[FragmentId, tuple[ExpiringRecords, ...]]:
        """The records that a rebuild of running fragments would read, and that are removed soon.

        Raises:
            MedusaError: as by `of`.
        """
        deadline = Deadline.after(self.clock, self.within_s, "examining what rebuilds need")
        found: dict[FragmentId, tuple[ExpiringRecords, ...]] = {}
        for record in fragments:
            one = FragmentId(record.network, record.fragment)
            if deadline.passed:
                break
            markers = self._markers(FragmentNames(one).markers)
            if markers:
                now_ms = self.clock.now_ms()
                ids = dict(record.topic_ids)
                needs = needs_of_rebuild(markers[0], markers[-1], ids, now_ms)
                found[one] = find_expiring(self.topics, needs, now_ms)
        return found

    def _markers(self, topic: TopicName) -> tuple[CommitMarker, ...]:
        """One of the latest markers of a fragment, and its last; none if it has none."""
        try:
            found = self.log.newest(topic, MARKERS)
        except NoSuchTopicError:
            return ()
        values = [one.value for one in found if one.value is not None]
        return tuple(decode_marker(one, f"topic {topic}") for one in (*values[:1], *values[-1:]))


def needs_at_rest(
    record: FragmentRecord, life: NetworkLife | None, marker: CommitMarker | None
) -> LogNeeds:
    """What a fragment needs of its topics when it is started.

    Args:
        record: of the fragment.
        life: of its network.
        marker: its last one; None: it has never run.
    """
    ids = dict(record.topic_ids)
    if marker is None or life is None or pending_succession(record, life, marker) is not None:
        read = LogNeeds({})
    else:
        read = needs_of(marker, ids)
    names = {topic_id: topic for topic, topic_id in ids.items()}
    begun: dict[TopicName, TopicNeeds] = {}
    for one in record.begins:
        topic = names.get(one.topic_id)
        if topic is not None and topic not in read.topics:
            begins: dict[int, Offset] = {partition: begin for partition, begin, _ in one.ranges}
            begun[topic] = TopicNeeds(TopicId(one.topic_id), begins)
    return LogNeeds({**read.topics, **begun}, since_ms=read.since_ms)
