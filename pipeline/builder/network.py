"""The network of a description: its settings, its external streams, its outputs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from pipeline.builder.options import (
    Availability,
    Duration,
    Limit,
    Placement,
    PriorityLevel,
    Reliability,
    ReliabilityMode,
    Size,
)
from pipeline.builder.streams import Box, DocumentDraft, External, Stream, present
from pipeline.network import yaml_writer
from pipeline.network.model import Network
from pipeline.network.written import Written
from pipeline.yaml_reader import YamlMap, YamlScalar

_SECTIONS = ("streams", "boxes", "outputs")


class NetworkBuilder:
    """Describes a network in Python.

    Arguments that are left out have the defaults of the network document. Mistakes in names,
    columns and expressions are reported when the whole is checked, all of them together, each with
    the file and line of the call.

    Args:
        name: the network's name: small letters, digits and `_`, beginning with a letter.
        window: the default window of aggregates.
        partitions: partitions of created topics; 4 if left out.
        replication: their replication factor; 1 if left out.
        retention: their retention, at least a minute; 7 days if left out.
        internal_retention: `"needed"`: the topics of streams that are no outputs keep the records
            that a fragment needs, however old, and no others; the retention, if left out.
        auto_create: False: create no topic, list the missing ones instead.
        pace: the least time between two batches of a fragment, for boxes that have none; up to
            60 s; 0 if left out.
        state_limit: the size of the state at which a fragment reads no more input, for boxes that
            have none; 16 MiB to 64 TiB; no limit if left out.
        placement: the nodes that boxes without a placement of their own may run on, and boxes that
            are to run apart; every node if left out.
        reliability: how another node goes on when a node fails, for boxes that have none;
            `"upstream_backup"` if left out.
        priority: which fragments run while the nodes have too little room for all, for boxes that
            have none; `"normal"` if left out.
        availability: when tentative results are preferred to none, for fragments none of whose
            boxes has one; never, if left out.
    """

    def __init__(
        self,
        name: str,
        *,
        window: Duration | None = None,
        partitions: int | None = None,
        replication: int | None = None,
        retention: Duration | None = None,
        internal_retention: Literal["needed"] | None = None,
        auto_create: bool | None = None,
        pace: Duration | None = None,
        state_limit: Size | None = None,
        placement: Placement | None = None,
        reliability: Reliability | ReliabilityMode | None = None,
        priority: PriorityLevel | None = None,
        availability: Availability | Duration | None = None,
    ) -> None:
        self.name = name
        self._draft = DocumentDraft(name)
        self._call = self._draft.call()
        self._settings = {
            "network": name,
            "window": window,
            "partitions": partitions,
            "replication": replication,
            "retention": retention,
            "internal_retention": internal_retention,
            "auto_create": auto_create,
            "pace": pace,
            "state_limit": state_limit,
            "placement": placement,
            "reliability": reliability,
            "priority": priority,
            "availability": availability,
        }
        self._tree()  # a value that cannot be written is rejected in this call

    def stream(
        self,
        name: str,
        *,
        topic: str,
        event_time: str,
        schema: str | None = None,
        subject: str | None = None,
        lateness: Duration | None = None,
        idle_after: Duration | None = None,
        silence: Literal["idle", "missing"] | None = None,
        load: Literal["along", "first"] | None = None,
        start: str | datetime | None = None,
        ahead: Duration | None = None,
        partitions: int | None = None,
        retention: Duration | None = None,
        dead_letters: Limit | None = None,
    ) -> External:
        """An external stream. One of `schema` and `subject` is needed.

        Args:
            name: its name in the network.
            topic: its Kafka topic.
            event_time: its event time: a TIMESTAMP column, or an expression of that type.
            schema: a file with the Avro schema, relative to the deployed file.
            subject: or its subject in the schema registry.
            lateness: how far a record may be behind the newest one of its partition; 5 s.
            idle_after: after how long without records a partition at its end is idle; 3 min, or 1 s
                with `load="first"`.
            silence: when all partitions are idle: `idle`, event time goes on; `missing`, it waits.
            load: at each start of a fragment: `along` (the default), event time follows the
                existing records; `first`, it waits until all of them are read, as for a table.
            start: first position of the first start: `earliest` (the default), `latest`, or a time
                with its offset, such as `2024-01-31T12:00:00Z` or a datetime that has a time zone.
            ahead: how far event time may exceed the record's Kafka timestamp; 1 h.
            partitions: partitions of the topic if it has to be created.
            retention: retention of the topic if it has to be created.
            dead_letters: how many unreadable records are accepted; all, if left out.

        Raises:
            DocumentError: there is such a stream already, or a value cannot be written.
        """
        self._draft.add(
            "streams",
            name,
            "stream",
            {
                "topic": topic,
                "schema": schema,
                "subject": subject,
                "event_time": event_time,
                "lateness": lateness,
                "idle_after": idle_after,
                "silence": silence,
                "load": load,
                "start": start,
                "ahead": ahead,
                "partitions": partitions,
                "retention": retention,
                "dead_letters": dead_letters,
            },
        )
        return External(name, self._draft)

    def output(
        self,
        box: Box,
        *,
        topic: str,
        partitions: int | None = None,
        retention: Duration | None = None,
        corrections: bool | None = None,
        key_format: Literal["avro", "string", "raw"] | None = None,
        placement: Placement | None = None,
        reliability: Reliability | ReliabilityMode | None = None,
        priority: PriorityLevel | None = None,
        availability: Availability | Duration | None = None,
    ) -> None:
        """Publish the output of a box under a topic name of your choice.

        Args:
            box: the box.
            topic: the Kafka topic.
            partitions: partitions of the topic if it is created.
            retention: retention of the topic if it is created; the network's, if left out.
            corrections: give each record an id, so that a replay can correct it.
            key_format: format of the keys: `avro` (the default), `string` or `raw`.
            placement: the nodes that the box may run on, if the box has none of its own.
            reliability: that of the box, if the box has none of its own.
            priority: the same.
            availability: the same.

        Raises:
            DocumentError: it is not a box of this network, it is an output already, or a value
                cannot be written.
        """
        given = str(box)
        if isinstance(box, Stream):
            given = "" if box.draft is self._draft else f"{box.name} of network {box.draft.network}"
        if given:
            message = f"an output needs a box of network {self.name}, not {given}"
            raise self._draft.mistake(self._draft.call(), message)
        content = {
            "topic": topic,
            "partitions": partitions,
            "retention": retention,
            "corrections": corrections,
            "key_format": key_format,
            "placement": placement,
            "reliability": reliability,
            "priority": priority,
            "availability": availability,
        }
        self._draft.add("outputs", box.name, "output", content)

    def written(self) -> Written:
        """The present document, not checked yet."""
        places = tuple(self._draft.places)
        return Written(self._tree(), places[0].file, places=places)

    def yaml(self) -> str:
        """The equivalent network document."""
        return yaml_writer.write(self._tree())

    def build(self, schemas: Mapping[str, str], code: Mapping[str, str] | None = None) -> Network:
        """The checked network; equal to that of the YAML document.

        Args:
            schemas: `schema` or `subject` of a stream → the text of the Avro schema.
            code: Python file of a box → its text; the functions are not tried.

        Raises:
            DocumentError: with every mistake, each with the file and line of its call.
        """
        # The checks need sqlglot, which takes a third of a second to import.
        from pipeline.network import document  # noqa: PLC0415

        written = self.written()
        return document.check(
            written,
            {
                reference: document.SchemaText(schemas[reference.value], reference.value)
                for reference in document.references(written)
                if reference.value in schemas
            },
            {
                reference.box: code[reference.file]
                for reference in document.code_references(written)
                if code is not None and reference.file in code
            },
        )

    def _tree(self) -> YamlMap:
        settings = self._draft.node(present(self._settings), self._call, f"network {self.name}")
        assert isinstance(settings, YamlMap)  # noqa: S101 - a mapping becomes a mapping
        sections = self._draft.sections
        return YamlMap(
            (
                *settings.entries,
                *(
                    (YamlScalar(name, self._call), YamlMap(tuple(sections[name]), self._call))
                    for name in _SECTIONS
                    if name in sections
                ),
            ),
            self._call,
        )
