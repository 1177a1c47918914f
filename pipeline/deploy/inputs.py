"""What changed fragments begin to read, or leave: their commit markers beside the new plan."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from brokers.kafka_interface import TopicAdmin
from brokers.records import Ends, TopicDescription
from pipeline.catalog.records import FragmentRecord, NetworkRecord
from pipeline.deploy.desired import positioned_topics
from pipeline.deploy.writers import Successions
from pipeline.ids import FragmentName, NetworkLife, Offset, StreamName, TopicId, TopicName
from pipeline.lanes.source_ids import Begin, Carried, carry, planned_sources
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import LeftSource
from pipeline.network.model import ExternalStream
from pipeline.planner.digest import fragment_digest
from pipeline.planner.inputs import ChangedInput, Ranges
from pipeline.planner.plan import Fragment, FragmentInput, Plan


@dataclass(frozen=True, slots=True)
class Inputs:
    """What is known of the topics of a plan.

    Args:
        described: those that exist.
        starts: their oldest offsets.
        ends: their ends.
        made: those that this network has made, which its fragments write.
        life: of the network; empty before its first deploy.
    """

    described: Mapping[TopicName, TopicDescription]
    starts: Ends
    ends: Ends
    made: frozenset[TopicName]
    life: NetworkLife

    def carried(
        self, fragment: Fragment, marker: CommitMarker, record: FragmentRecord | None
    ) -> Carried:
        """A fragment's last marker in the names of the new plan."""
        planned = planned_sources(fragment, self._ids(fragment))
        return carry(marker, planned, self.decided(fragment, record))

    def is_changed(self, fragment: Fragment, record: FragmentRecord | None) -> bool:
        """Whether another plan, or other topics, are deployed than what is wanted now."""
        if record is None or record.digest != fragment_digest(fragment):
            return True
        ids = self._ids(fragment)
        return any(ids.get(topic) != topic_id for topic, topic_id in record.topic_ids)

    def decided(self, fragment: Fragment, record: FragmentRecord | None) -> dict[StreamName, Begin]:
        """Where streams begin, as a deploy has decided of the topics that they are over."""
        ids = self._ids(fragment)
        begins = record.begins if record else ()
        known = {begun.topic_id: begun.begin(self.life) for begun in begins}
        return {
            stream.name: known[ids[stream.topic]]
            for stream in fragment.inputs
            if ids[stream.topic] in known
        }

    def held(self, stream: FragmentInput) -> Ranges:
        """All that a stream's topic holds; nothing if it is still to be created."""
        starts, ends = (of.get(stream.topic, {}) for of in (self.starts, self.ends))
        partitions = ends or dict.fromkeys(range(stream.partitions), Offset(0))
        return tuple((p, starts.get(p, Offset(0)), end) for p, end in sorted(partitions.items()))

    def unread(self, left: LeftSource) -> Ranges:
        """What the topic of a source that is left, as far as it exists, holds beyond positions.

        Of a partition that came since the last marker nothing was read.
        """
        topic, topic_id = left.source.topics[0]
        found = self.described.get(topic)
        if found is None or found.topic_id != topic_id:
            return ()
        own = {at.partition: offset for at, offset in left.end.items() if at.topic == topic}
        read = {**self.starts.get(topic, {}), **own}
        ends = self.ends.get(topic, {})
        return tuple(
            (p, begin, max(begin, ends.get(p, begin))) for p, begin in sorted(read.items())
        )

    def _ids(self, fragment: Fragment) -> dict[TopicName, TopicId]:
        """The ids of a fragment's topics; one that is still to be created has none yet."""
        return {
            topic: TopicId(self.described[topic].topic_id if topic in self.described else "")
            for topic in positioned_topics(fragment, self.described)
        }


def look(
    described: Mapping[TopicName, TopicDescription],
    topics: TopicAdmin,
    more: set[TopicName],
    network: NetworkRecord | None,
) -> Inputs:
    """Ask for what is needed to compare.

    Args:
        described: the plan's topics that exist.
        topics: whom to ask.
        more: topics that may have been read before.
        network: whose plan it is; None before its first deploy.
    """
    names = sorted({*described, *more})
    others = topics.describe(sorted(more - described.keys()))
    starts, ends = topics.start_offsets(names), topics.end_offsets(names)
    made = frozenset(network.made_topics if network else ())
    life = network.life if network else NetworkLife("")
    return Inputs({**described, **others}, starts, ends, made, life)


def changed_inputs(
    plan: Plan,
    records: Mapping[FragmentName, FragmentRecord],
    markers: Mapping[FragmentName, CommitMarker],
    inputs: Inputs,
    successions: Successions,
) -> dict[FragmentName, tuple[ChangedInput, ...]]:
    """What fragments begin to read, or leave.

    Args:
        plan: what is wanted.
        records: what is deployed.
        markers: of the fragments that have run.
        inputs: what is known of topics.
        successions: the fragments that begin to write where others have written.
    """
    found: dict[FragmentName, tuple[ChangedInput, ...]] = {}
    for fragment in plan.fragments:
        record, marker = records.get(fragment.name), markers.get(fragment.name)
        if fragment.name in successions:
            before = record if fragment.name in successions.pending else None
            found[fragment.name] = tuple(_beside(fragment, before, inputs))
        elif marker is not None:
            found[fragment.name] = tuple(_of(fragment, record, marker, inputs))
    return found


def _of(
    fragment: Fragment, record: FragmentRecord | None, marker: CommitMarker, inputs: Inputs
) -> Iterator[ChangedInput]:
    if not marker.totals.records_in:
        return  # nothing was read, so nothing can be lost or come twice
    carried, decided = inputs.carried(fragment, marker, record), inputs.decided(fragment, record)
    for stream in fragment.inputs:
        if stream.name in carried.unread and stream.name not in decided:
            derived = not isinstance(stream, ExternalStream)
            yield ChangedInput(stream.name, stream.topic, True, inputs.held(stream), derived)
    if not inputs.is_changed(fragment, record):
        return  # what it leaves was said when that was deployed
    before = {left.source.id for left in marker.left}
    for left in carried.marker.left:
        if left.source.id not in before:
            topic = left.source.topics[0][0]
            derived = topic in inputs.made
            yield ChangedInput(left.source.name, topic, False, inputs.unread(left), derived)


def _beside(
    fragment: Fragment, before: FragmentRecord | None, inputs: Inputs
) -> Iterator[ChangedInput]:
    """A fragment is to write where others have written.

    `before`: what was deployed, if that has decided something already that is not done yet.
    """
    decided = inputs.decided(fragment, before)
    for stream in fragment.inputs:
        if stream.name not in decided:
            derived = not isinstance(stream, ExternalStream)
            held, output = inputs.held(stream), fragment.output.topic
            yield ChangedInput(stream.name, stream.topic, True, held, derived, output)
