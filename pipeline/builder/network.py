"""The network of a description: its settings, its streams from outside, its outputs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from pipeline.builder.options import Duration, Limit
from pipeline.builder.streams import Box, External, Sheet, Stream, said
from pipeline.network import yaml_writer
from pipeline.network.model import Network
from pipeline.network.written import Written
from pipeline.network.yaml_reader import YamlMap, YamlScalar

_SECTIONS = ("streams", "boxes", "outputs")


class NetworkBuilder:
    """Describes a network in Python.

    What a call leaves out has the default that the network document has. Mistakes in names, columns
    and expressions are told when the whole is checked, all of them together, each with the file and
    line of the call.

    Args:
        name: the network's name: small letters, digits and `_`, beginning with a letter.
        window: the window of every aggregate that names none.
        partitions: partitions of the topics that are created; 4 if left out.
        replication: their replication factor; 1 if left out.
        retention: how long they keep records, at least a minute; 7 days if left out.
        auto_create: False: create no topic, list what is needed instead.
    """

    def __init__(
        self,
        name: str,
        *,
        window: Duration | None = None,
        partitions: int | None = None,
        replication: int | None = None,
        retention: Duration | None = None,
        auto_create: bool | None = None,
    ) -> None:
        self.name = name
        self._sheet = Sheet(name)
        self._call = self._sheet.call()
        self._settings = {
            "network": name,
            "window": window,
            "partitions": partitions,
            "replication": replication,
            "retention": retention,
            "auto_create": auto_create,
        }
        self._tree()  # a value that cannot be written is refused in this call

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
        """A stream that comes from outside. One of `schema` and `subject` is needed.

        Args:
            name: its name in the network.
            topic: the Kafka topic that it comes from.
            event_time: when it happened: a TIMESTAMP column, or an expression of that type.
            schema: a file with the Avro schema, relative to the file that is deployed.
            subject: or the subject in the schema registry that has it.
            lateness: how far behind the newest record of its partition a record may be; 5 s.
            idle_after: after how long a partition at its end steps aside; 3 min, or 1 s
                with `load="first"`.
            silence: when all is silent: `idle`, event time goes on; `missing`, it waits.
            load: at each start of a fragment: `along` (the default), event time follows the records
                that are there; `first`, it waits until all of them are read, as for a table.
            start: where the first start reads from: `earliest` (the default), `latest`, or a time
                with its offset, such as `2024-01-31T12:00:00Z` or a datetime that has a time zone.
            ahead: how far event time may lie beyond the record's Kafka timestamp; 1 h.
            partitions: partitions of the topic if it has to be created.
            retention: how long the topic keeps records if it has to be created.
            dead_letters: how many records that cannot be read are borne; all, if left out.

        Raises:
            DocumentError: there is such a stream already, or a value cannot be written.
        """
        self._sheet.add(
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
        return External(name, self._sheet)

    def output(
        self,
        box: Box,
        *,
        topic: str,
        partitions: int | None = None,
        retention: Duration | None = None,
        corrections: bool | None = None,
        key_format: Literal["avro", "string", "raw"] | None = None,
    ) -> None:
        """Let what a box writes leave the network under a topic name of your choice.

        Args:
            box: the box.
            topic: the Kafka topic.
            partitions: with how many partitions it is created.
            retention: how long it keeps records if it is created; as the network, if left out.
            corrections: give each record an id, so that a replay can correct it.
            key_format: how keys are written: `avro` (the default), `string` or `raw`.

        Raises:
            DocumentError: it is no box of this network, it is put out already, or a value cannot be
                written.
        """
        given = str(box)
        if isinstance(box, Stream):
            given = "" if box.sheet is self._sheet else f"{box.name} of network {box.sheet.network}"
        if given:
            message = f"an output needs a box of network {self.name}, not {given}"
            raise self._sheet.mistake(self._sheet.call(), message)
        content = {
            "topic": topic,
            "partitions": partitions,
            "retention": retention,
            "corrections": corrections,
            "key_format": key_format,
        }
        self._sheet.add("outputs", box.name, "output", content)

    def written(self) -> Written:
        """The document as it stands now, not checked yet."""
        places = tuple(self._sheet.places)
        return Written(self._tree(), places[0].file, places=places)

    def yaml(self) -> str:
        """The network document that says the same."""
        return yaml_writer.write(self._tree())

    def build(self, schemas: Mapping[str, str], code: Mapping[str, str] | None = None) -> Network:
        """The checked network; the very one that the YAML document gives.

        Args:
            schemas: what the streams name as `schema` or `subject` → the text of the Avro schema.
            code: the Python files that boxes name → their text; the functions are not tried.

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
        what = f"network {self.name}"
        settings = self._sheet.node(said(self._settings), self._call, what)
        assert isinstance(settings, YamlMap)  # noqa: S101 - a mapping gives a mapping
        sections = self._sheet.sections
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
