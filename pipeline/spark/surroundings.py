"""Looks up what lowering needs to know: schema ids in the registry, partitions and ids in Kafka."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from brokers.kafka.admin import KafkaAdmin
from pipeline.errors import RefusedError, SchemaError
from pipeline.ids import Offset, SchemaId, Subject, TopicName
from pipeline.lanes.positions import InputPartition, Positions
from pipeline.names import key_subject, tentative_topic, value_subject
from pipeline.network.model import ExternalStream, StartAt
from pipeline.planner.plan import Fragment, FragmentInput
from pipeline.spark.lower import Surroundings
from pipeline.spark.lowered import Lowered, TopicRole, WriterSchema
from schemas.client import RegistryClient


@dataclass(frozen=True, slots=True)
class Surveyor:
    """Asks registry, Kafka and catalog on behalf of lanes.

    `missing` and `record_missing` read and extend the catalog's list of schema ids that the
    registry answered it does not have.
    """

    registry: RegistryClient
    admin: KafkaAdmin
    missing: Callable[[], frozenset[SchemaId]]
    record_missing: Callable[[SchemaId], None]

    def survey(
        self,
        fragment: Fragment,
        topic_ids: Mapping[TopicName, str],
        new_ids: tuple[SchemaId, ...],
    ) -> Surroundings:
        """Everything for lowering a fragment.

        `new_ids` were met by a batch; those that the registry does not have are recorded first.

        Raises:
            SchemaError: an output's schema is not registered.
            RefusedError: a topic is gone, or was deleted and made again.
            UnavailableError: a server does not answer.
        """
        extra, absent, before = [], [], self.missing()
        for schema_id in new_ids:
            text = self._text(schema_id)
            if text is None:
                self.record_missing(schema_id)
                absent += [schema_id] if schema_id in before else []
            else:
                extra.append(WriterSchema(schema_id, text))
        output = fragment.output
        value_id = self._registered(value_subject(output.topic), output.schema_json)
        key_id = None
        if output.key_schema_json is not None:
            key_id = self._registered(key_subject(output.topic), output.key_schema_json)
        return Surroundings(
            writers={i.name: self._writers(i, tuple(extra)) for i in fragment.inputs},
            missing=tuple(sorted(self.missing())),
            absent=tuple(absent),
            partitions=self._partitions(fragment, topic_ids),
            value_id=value_id,
            key_id=key_id,
        )

    def _text(self, schema_id: SchemaId) -> str | None:
        """A schema's text; None if there is none, or if it is none that Avro could read."""
        try:
            found = self.registry.schema_by_id(schema_id)
        except SchemaError:
            return None
        return None if found is None else found.text

    def start_positions(self, lowered: Lowered) -> dict[InputPartition, Offset]:
        """Where a first start begins: external streams as their document says, others first."""
        found: dict[InputPartition, Offset] = {}
        for source in lowered.sources:
            for assigned in source.topics:
                if assigned.role is TopicRole.ADVANCES:
                    offsets = self.admin.end_offsets((assigned.topic,))
                elif assigned.role is TopicRole.DATA and source.start is not None:
                    offsets = {assigned.topic: self._start_of(assigned.topic, source.start)}
                else:
                    offsets = self.admin.start_offsets((assigned.topic,))
                for partition, offset in offsets[assigned.topic].items():
                    at = InputPartition(source.input, assigned.topic, partition)
                    found[at] = Offset(offset)
        return found

    def positions_for(self, lowered: Lowered, known: Positions) -> dict[InputPartition, Offset]:
        """A position for every partition that is assigned now.

        What is not known begins at its start: for a topic that got more partitions its oldest
        record, for a topic that was not read before where its stream says.
        """
        assigned = {
            InputPartition(source.input, topic.topic, partition)
            for source in lowered.sources
            for topic in source.topics
            for partition in range(topic.partitions)
        }
        found = {at: known[at] for at in assigned if at in known}
        new = assigned - found.keys()
        if not new:
            return found
        read_before = {(at.input, at.topic) for at in found}
        first = self.start_positions(lowered)
        oldest = self.admin.start_offsets(sorted({at.topic for at in new}))
        for at in new:
            grown = (at.input, at.topic) in read_before
            found[at] = oldest[at.topic][at.partition] if grown else first[at]
        return found

    def _start_of(self, topic: TopicName, start: StartAt) -> Mapping[int, Offset]:
        if start.position == "latest":
            return self.admin.end_offsets((topic,))[topic]
        if start.at_ms is not None:
            return self.admin.offsets_for_time(topic, start.at_ms)
        return self.admin.start_offsets((topic,))[topic]

    def _registered(self, subject: Subject, schema_json: str) -> SchemaId:
        found = self.registry.lookup(subject, schema_json)
        if found is None:
            raise SchemaError(
                "the schema of the output is not registered",
                place=f"subject {subject}",
                hint="run `medusa deploy` again: it registers what is missing",
            )
        return found

    def _writers(
        self, stream: FragmentInput, extra: tuple[WriterSchema, ...]
    ) -> tuple[WriterSchema, ...]:
        subject = (
            stream.subject if isinstance(stream, ExternalStream) else value_subject(stream.topic)
        )
        known = {v.id: WriterSchema(v.id, v.text) for v in self.registry.versions(subject)}
        known.update({w.id: w for w in extra})
        return tuple(known[schema_id] for schema_id in sorted(known))

    def _partitions(
        self, fragment: Fragment, topic_ids: Mapping[TopicName, str]
    ) -> dict[TopicName, int]:
        names = fragment.names
        topics = [names.redrive, names.advances, names.markers, names.dead_letters]
        topics.append(fragment.output.topic)
        for stream in fragment.inputs:
            topics.append(stream.topic)
            if not isinstance(stream, ExternalStream):
                topics.append(tentative_topic(stream.topic))
        found = self.admin.describe(tuple(topics))
        for topic in topics:
            description = found.get(topic)
            if description is None:
                raise RefusedError(
                    "the topic does not exist",
                    place=f"topic {topic}",
                    hint="it was there at deploy: run `medusa deploy` again to create it",
                )
            expected = topic_ids.get(topic)
            if expected is not None and expected != description.topic_id:
                raise RefusedError(
                    "the topic was deleted and made again since the network was deployed, "
                    "so positions in it mean other records",
                    place=f"topic {topic}",
                    hint="destroy the network and deploy it again to start over",
                )
        return {topic: found[topic].partitions for topic in topics}
