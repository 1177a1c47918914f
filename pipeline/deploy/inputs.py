"""Changed inputs of fragments: topics that they begin to read, or stop reading, by the new plan."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from brokers.kafka_interface import TopicAdmin
from brokers.records import Ends, TopicDescription
from pipeline.catalog.records import Begun, FragmentRecord, NetworkRecord
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
    """Topics of a plan: descriptions and offsets.

    Args:
        described: the topics that exist.
        starts: their oldest offsets.
        ends: their end offsets.
        made: the topics that this network has created, which its fragments write.
        life: of the network; empty before its first deploy.
    """

    described: Mapping[TopicName, TopicDescription]
    starts: Ends
    ends: Ends
    made: frozenset[TopicName]
    life: NetworkLife

    def carried(
        self, fragment: Fragment, marker: CommitMarker, begins: tuple[Begun, ...]
    ) -> Carried:
        """A fragment's last marker, translated to the names of the new plan."""
        planned = planned_sources(fragment, self._ids(fragment))
        return carry(marker, planned, self.decided(fragment, begins))

    def is_changed(self, fragment: Fragment, record: FragmentRecord | None) -> bool:
        """Whether a fragment's plan, or its topic ids, differ from the deployed ones."""
        if record is None or record.digest != fragment_digest(fragment):
            return True
        ids = self._ids(fragment)
        return any(ids.get(topic) != topic_id for topic, topic_id in record.topic_ids)

    def decided(self, fragment: Fragment, begins: tuple[Begun, ...]) -> dict[StreamName, Begin]:
        """The decided beginnings of a fragment's streams; matched by topic id."""
        ids = self._ids(fragment)
        by_topic = {begun.topic_id: begun.begin(self.life) for begun in begins}
        return {
            stream.name: by_topic[ids[stream.topic]]
            for stream in fragment.inputs
            if ids[stream.topic] in by_topic
        }

    def retained(self, stream: FragmentInput) -> Ranges:
        """Offset ranges of all records of a stream's topic; empty ranges if it does not exist."""
        starts, ends = (of.get(stream.topic, {}) for of in (self.starts, self.ends))
        partitions = ends or dict.fromkeys(range(stream.partitions), Offset(0))
        return tuple((p, starts.get(p, Offset(0)), end) for p, end in sorted(partitions.items()))

    def unread(self, left: LeftSource) -> Ranges:
        """Unread offset ranges of a source that is left; none if its topic does not exist.

        A partition added since the last marker is unread from its start.
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
        """Kafka's ids of a fragment's topics; empty for a topic that does not exist yet."""
        return {
            topic: TopicId(self.described[topic].topic_id if topic in self.described else "")
            for topic in positioned_topics(fragment, self.described)
        }


def read_inputs(
    described: Mapping[TopicName, TopicDescription],
    topics: TopicAdmin,
    read_before: set[TopicName],
    network: NetworkRecord | None,
) -> Inputs:
    """Read the descriptions and offsets of topics.

    Args:
        described: the plan's topics that exist.
        topics: the Kafka client.
        read_before: topics that fragments have read; they may not exist any more.
        network: the deployed network; None before its first deploy.
    """
    names = sorted({*described, *read_before})
    others = topics.describe(sorted(read_before - described.keys()))
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
    """Compute the inputs that fragments begin to read, or stop reading.

    Args:
        plan: the plan to deploy.
        records: the deployed fragments.
        markers: of the fragments that have run.
        inputs: descriptions and offsets of topics.
        successions: the fragments that begin to write an output that others have written.
    """
    found: dict[FragmentName, tuple[ChangedInput, ...]] = {}
    for fragment in plan.fragments:
        record, marker = records.get(fragment.name), markers.get(fragment.name)
        begins = successions.begins(record)
        if fragment.name in successions:
            found[fragment.name] = tuple(_of_successor(fragment, begins, inputs))
        elif marker is not None:
            changed = inputs.is_changed(fragment, record)
            continued = _of_continued(fragment, begins, marker, inputs, changed=changed)
            found[fragment.name] = tuple(continued)
    return found


def _of_continued(
    fragment: Fragment,
    begins: tuple[Begun, ...],
    marker: CommitMarker,
    inputs: Inputs,
    *,
    changed: bool,
) -> Iterator[ChangedInput]:
    if not marker.totals.records_in:
        return  # nothing was read, so nothing can be lost or duplicated
    carried, decided = inputs.carried(fragment, marker, begins), inputs.decided(fragment, begins)
    for stream in fragment.inputs:
        if stream.name in carried.unread and stream.name not in decided:
            derived = not isinstance(stream, ExternalStream)
            yield ChangedInput(stream.name, stream.topic, True, inputs.retained(stream), derived)
    if not changed:
        return  # inputs that it leaves were reported when this version was deployed
    before = {left.source.id for left in marker.left}
    for left in carried.marker.left:
        if left.source.id not in before:
            topic = left.source.topics[0][0]
            derived = topic in inputs.made
            yield ChangedInput(left.source.name, topic, False, inputs.unread(left), derived)


def _of_successor(
    fragment: Fragment, begins: tuple[Begun, ...], inputs: Inputs
) -> Iterator[ChangedInput]:
    """Undecided inputs of a fragment that begins to write an output of other fragments.

    `begins`: the decisions of earlier deploys that still apply.
    """
    decided = inputs.decided(fragment, begins)
    for stream in fragment.inputs:
        if stream.name not in decided:
            derived = not isinstance(stream, ExternalStream)
            ranges, output = inputs.retained(stream), fragment.output.topic
            yield ChangedInput(stream.name, stream.topic, True, ranges, derived, output)
