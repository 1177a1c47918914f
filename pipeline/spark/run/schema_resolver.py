"""Resolver of lowering's external inputs: schemas in the registry, partitions and ids in Kafka."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from brokers.kafka_interface import TopicAdmin, complete
from brokers.records import Ends
from pipeline.errors import SchemaError
from pipeline.ids import Offset, SchemaHandle, SchemaId, Subject, TopicName
from pipeline.lanes.source_ids import first_sources, planned_sources
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import InputPartition, MarkedSource
from pipeline.names import key_subject, value_subject
from pipeline.network.model import ExternalStream, StartAt
from pipeline.planner.plan import Fragment, FragmentInput
from pipeline.spark.query.lower import LoweringInputs
from pipeline.spark.query.lowered import Lowered, TopicRole, WriterSchema
from pipeline.spark.run.topic_identity import check_same, check_there, topics_of
from schemas.client import RegistryClient
from schemas.wire import may_exist, prefix

MISSING_MAX: Final = 1_000
"""Maximum number of recorded missing ids; each is a znode in the catalog and a literal in a
query."""
ASKED_MAX: Final = 200
"""Maximum number of ids requested from the registry at once: takes seconds, also over a slow
network."""


class MissingSchemaError(SchemaError):
    """The registry lacks a schema that a deploy registered; a lane waits for it."""

    code = "missing-schema"
    external = True


@dataclass(frozen=True, slots=True)
class SchemaResolver:
    """Reads schemas, topics and positions for lanes from registry, Kafka and catalog.

    `missing` and `record_missing` read and extend the catalog's list of schemas that are missing
    from the registry.
    """

    registry: RegistryClient
    admin: TopicAdmin
    missing: Callable[[], frozenset[SchemaHandle]]
    record_missing: Callable[[SchemaHandle], None]

    def resolve(
        self,
        fragment: Fragment,
        topic_ids: Mapping[TopicName, str],
        met: tuple[SchemaHandle, ...],
        sources: tuple[MarkedSource, ...] | None = None,
    ) -> LoweringInputs:
        """Read all external inputs of lowering a fragment.

        Args:
            fragment: as planned.
            topic_ids: of its topics, when it was deployed.
            met: schemas found in its inputs, in addition to those registered for them.
            sources: as in the lane's marker; None: as for a first start.

        Raises:
            MissingSchemaError: an output's schema is not registered.
            NoSuchTopicError: a topic is gone.
            RefusedError: a topic was deleted and created again.
            UnavailableError: a server does not answer.
        """
        output = fragment.output
        value_id = self._registered(value_subject(output.topic), output.schema_json)
        key_id = None
        if output.key_schema_json is not None:
            key_id = self._registered(key_subject(output.topic), output.key_schema_json)
        # After the output's schema, whose lookup detects a registry that has lost its contents.
        texts = ((handle, self._text(handle)) for handle in met)
        extra = tuple(WriterSchema(found, text) for found, text in texts if text is not None)
        if sources is None:
            sources = first_sources(planned_sources(fragment, topic_ids))
        return LoweringInputs(
            sources=sources,
            writers={i.name: self._writers(i, extra) for i in fragment.inputs},
            missing=tuple(sorted(self.missing(), key=prefix)),
            partitions=self._partitions(fragment, topic_ids),
            value_id=value_id,
            key_id=key_id,
        )

    def look_up(self, handles: tuple[SchemaHandle, ...]) -> tuple[SchemaHandle, ...]:
        """Those schemas that the registry has; `handles` has the most important first.

        The others are recorded as missing, so that this decision holds for their records, whatever
        is registered later. Values that are not records at all may contain any id, so at most
        `MISSING_MAX` are recorded, and recorded ones are not requested again. Of the others the
        first `ASKED_MAX` are requested; the rest is ignored.

        Raises:
            UnavailableError: a server does not answer.
        """
        found, known = [], self.missing()
        room = MISSING_MAX - len(known)
        unknown = [handle for handle in handles if handle not in known]
        impossible = (handle for handle in unknown if not may_exist(handle))
        asked = (handle for handle in unknown if may_exist(handle))
        for handle in chain(islice(asked, ASKED_MAX), islice(impossible, max(room, 0))):
            if self._text(handle) is not None:
                found.append(handle)
            elif room > 0:
                self.record_missing(handle)
                room -= 1
        return tuple(found)

    def existing(self, handles: tuple[SchemaHandle, ...]) -> tuple[SchemaHandle, ...]:
        """Those schemas that the registry has; `handles` has the most important first.

        The others are not recorded as missing: they may return. At most `ASKED_MAX` are requested.

        Raises:
            UnavailableError: a server does not answer.
        """
        possible = (handle for handle in handles if may_exist(handle))
        asked = islice(possible, ASKED_MAX)
        return tuple(handle for handle in asked if self._text(handle) is not None)

    def _text(self, handle: SchemaHandle) -> str | None:
        """A schema's text; None if there is none, or it is not readable by Avro."""
        try:
            found = self.registry.schema_of(handle)
        except SchemaError:
            return None
        return None if found is None else found.text

    def start_positions(
        self, lowered: Lowered, only: Container[TopicName] | None = None
    ) -> dict[InputPartition, Offset]:
        """Begin positions of a first start: by the document; derived streams at the start.

        An existing redrive topic contains only records for others, such as a fragment of the same
        name in an earlier life of the network: this fragment's come later. `only`: of these topics;
        others are not asked for.
        """
        found: dict[InputPartition, Offset] = {}
        for source in lowered.sources:
            for assigned in source.topics:
                if only is not None and assigned.topic not in only:
                    continue
                if assigned.role is TopicRole.REDRIVE:
                    offsets = self._ends_of(assigned.topic)
                elif source.start is not None:
                    offsets = {assigned.topic: self._start_of(assigned.topic, source.start)}
                else:
                    offsets = self._starts_of(assigned.topic)
                for partition, offset in offsets[assigned.topic].items():
                    found[InputPartition(source.input, assigned.topic, partition)] = Offset(offset)
        return found

    def positions_for(self, lowered: Lowered, marker: CommitMarker) -> dict[InputPartition, Offset]:
        """A position for every assigned partition: the marker's, if it has one.

        A new partition of a known topic begins at its oldest record, a topic that was not read
        before as configured for its stream. A new redrive topic is read from 0 on: records that
        were removed from it were never read. Topics without a new partition are not asked for
        anything: they may be out of reach.
        """
        assigned = {
            InputPartition(source.input, topic.topic, partition): topic.role
            for source in lowered.sources
            for topic in source.topics
            for partition in range(topic.partitions)
        }
        found = {at: marker.end[at] for at in assigned if at in marker.end}
        new = assigned.keys() - found.keys()
        if not new:
            return found
        read_before = {(at.input, at.topic) for at in found}
        ever_read = {at.topic for end in (marker.end, *(o.end for o in marker.left)) for at in end}
        redriven = {at for at in new if assigned[at] is TopicRole.REDRIVE}
        unread = {at for at in redriven if at.topic not in ever_read}
        grown = (redriven - unread) | {at for at in new if (at.input, at.topic) in read_before}
        found.update(dict.fromkeys(unread, Offset(0)))
        topics = sorted({at.topic for at in grown})
        oldest = complete(self.admin.start_offsets(topics), topics) if topics else {}
        found.update((at, Offset(oldest[at.topic][at.partition])) for at in grown)
        begun = new - unread - grown
        if begun:
            first = self.start_positions(lowered, {at.topic for at in begun})
            found.update((at, first[at]) for at in begun)
        return found

    def _start_of(self, topic: TopicName, start: StartAt) -> Mapping[int, Offset]:
        if start.position == "latest":
            return self._ends_of(topic)[topic]
        if start.at_ms is not None:
            return self.admin.offsets_for_time(topic, start.at_ms)
        return self._starts_of(topic)[topic]

    def _starts_of(self, topic: TopicName) -> Ends:
        return complete(self.admin.start_offsets((topic,)), (topic,))

    def _ends_of(self, topic: TopicName) -> Ends:
        return complete(self.admin.end_offsets((topic,)), (topic,))

    def _registered(self, subject: Subject, schema_json: str) -> SchemaId:
        found = self.registry.lookup(subject, schema_json)
        if found is None:
            raise MissingSchemaError(
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
        registered = (WriterSchema(v.id, v.text) for v in self.registry.readable_versions(subject))
        known = {writer.handle: writer for writer in (*registered, *extra)}
        return tuple(known[handle] for handle in sorted(known, key=prefix))

    def _partitions(
        self, fragment: Fragment, topic_ids: Mapping[TopicName, str]
    ) -> dict[TopicName, int]:
        topics = topics_of(fragment, topic_ids)
        found = self.admin.describe(topics)
        check_there(topics, found)
        check_same(topics, topic_ids, found)
        return {topic: found[topic].partitions for topic in topics}
