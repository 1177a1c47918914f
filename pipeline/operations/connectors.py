"""Running connectors by hand: from a document to a runner, and what a source has."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from connectors.catalogue import Context, Kind
from connectors.document import Document, parse
from connectors.inferring import inferred
from connectors.running.loop import Runner
from connectors.running.sink_runner import SinkRunner
from connectors.running.source_runner import SourceRunner, Target
from connectors.source import Limit, Refused, Row, Source
from pipeline.clock import Clock
from pipeline.errors import InputError, RefusedError, SchemaError
from pipeline.names import ConnectorNames, value_subject
from pipeline.operations.connections import Connections
from pipeline.operations.streams import newest_schema
from schemas.avro import AvroSchema
from schemas.avro import parse as parse_schema
from schemas.json_value import JsonObject
from schemas.types import RecordType

SAMPLE = Limit(1_000, 4_000_000)


@dataclass(frozen=True, slots=True)
class Described:
    """A connector: its document, the folder that its paths begin at, its kind, and its schema."""

    document: Document
    folder: Path
    kind: Kind
    schema_json: str | None

    @property
    def schema(self) -> AvroSchema | None:
        """The schema of a source; None: the document names none."""
        return None if self.schema_json is None else parse_schema(self.schema_json)

    def context(self, clock: Clock, schema: AvroSchema | None) -> Context:
        """What the connector is made of, besides its options."""
        return Context(self.folder, clock, schema, self.document.name)

    def source(self, clock: Clock) -> Source:
        """A new source."""
        if self.kind.source is None:
            raise InputError(f"{self.kind.name} is no source", place=str(self.folder))
        return self.kind.source(self.document.options, self.context(clock, self.schema))


@dataclass(frozen=True, slots=True)
class Sample:
    """The first records of a source.

    Args:
        rows: the first ones.
        refused: what is none among them.
        schema: that of the document, or the one that was inferred.
    """

    rows: tuple[Row, ...]
    refused: tuple[Refused, ...]
    schema: JsonObject | None


def describe(file: Path, kinds: Mapping[str, Kind]) -> Described:
    """Read the document of a connector, and the schema that it names.

    Raises:
        InputError: one of them cannot be read, or is wrong.
    """
    document = parse(_content(file), str(file))
    end = "source" if document.source else "sink"
    kind = kinds.get(document.kind)
    if kind is None or getattr(kind, end) is None:
        fitting = [one.name for one in kinds.values() if getattr(one, end) is not None]
        raise InputError(
            f"there is no {end} {document.kind}",
            place=f"{file}: {end}",
            hint=f"there is: {', '.join(fitting)}.",
        )
    text = None
    if document.schema is not None:
        text = _content(file.parent / document.schema)
        root = parse_schema(text).root
        names = [one.name for one in root.fields] if isinstance(root, RecordType) else []
        if document.key is not None and document.key not in names:
            message = f"the schema has no field {document.key} for the key"
            raise SchemaError(message, place=str(file))
    return Described(document, file.parent, kind, text)


def sample(described: Described, clock: Clock) -> Sample:
    """Read the first records of a source; nothing is written.

    Raises:
        InputError: no schema can be inferred.
        UnavailableError: the source cannot be read.
    """
    found: list[Row | Refused] = []
    source = described.source(clock)
    try:
        for split in source.splits({}):
            left = SAMPLE.records - len(found)
            if left <= 0:
                break
            found.extend(source.read(split, None, Limit(left, SAMPLE.size_bytes)).records)
    finally:
        source.close()
    rows = tuple(one for one in found if isinstance(one, Row))
    refused = tuple(one for one in found if isinstance(one, Refused))
    schema = None
    if described.schema is None:
        texts = described.document.options.get("format") == "csv"
        schema = inferred((one.fields for one in rows), described.document.name, texts=texts)
    return Sample(rows, refused, schema)


def runner_of(described: Described, connections: Connections, clock: Clock) -> Runner:
    """What runs a connector; registers the schema of a source.

    Raises:
        SchemaError: a source has no schema, or the registry does not accept it.
        RefusedError: the topic does not exist.
    """
    document = described.document
    names = ConnectorNames(connections.participant, document.name)
    if document.topic not in connections.topics.describe([document.topic]):
        raise RefusedError(
            f"there is no topic {document.topic}",
            hint="`medusa deploy` makes the topics of a network.",
        )
    if not document.source:
        return _sink_runner(described, names, connections, clock)
    schema = described.schema
    if schema is None or described.schema_json is None:
        raise SchemaError(
            "the connector has no schema",
            place=str(described.folder),
            hint="save what `medusa connect show FILE --schema` prints, and name it by `schema:`.",
        )
    subject = value_subject(document.topic)
    schema_id = connections.registry.register(subject, described.schema_json)
    return SourceRunner(
        names,
        described.source(clock),
        Target(document.topic, schema, schema_id, document.key),
        connections.kafka,
        connections.topics,
        clock,
        document.limit,
        document.rates,
    )


def _sink_runner(
    described: Described, names: ConnectorNames, connections: Connections, clock: Clock
) -> Runner:
    document = described.document
    schema = parse_schema(newest_schema(document.topic, connections).text)
    if described.kind.sink is None:
        raise InputError(f"{described.kind.name} is no sink", place=str(described.folder))
    return SinkRunner(
        names,
        described.kind.sink(document.options, described.context(clock, schema)),
        document.topic,
        connections.kafka,
        connections.topics,
        schema,
        connections.registry.schema_of,
        clock,
        document.limit,
        rates=document.rates,
    )


def _content(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"the file cannot be read: {error.strerror}", place=str(file)) from error
    except UnicodeDecodeError as error:
        raise InputError("the file is not UTF-8 text", place=str(file)) from error
