"""Decoder of records: results, which must be valid; inputs, which may be invalid."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from brokers.records import KafkaRecord
from pipeline.errors import BrokenInvariantError, SchemaError
from pipeline.examples.collect import plain
from pipeline.ids import SchemaHandle
from pipeline.reference.inputs import Fields, InputRecord, Place
from schemas.avro import AvroSchema
from schemas.codec import decode
from schemas.logical import Native
from schemas.wire import Framed, Part, WireFault, identified, split, words


@dataclass(frozen=True, slots=True)
class Decoding:
    """Decodes the values of records to fields.

    Args:
        schema_of: returns the schema of a handle; None: the registry has none.
    """

    schema_of: Callable[[SchemaHandle], AvroSchema | None]

    def result(self, record: KafkaRecord) -> Mapping[str, Native]:
        """The fields of a result.

        Raises:
            BrokenInvariantError: it is not framed, or its schema is not registered.
            SchemaError: it does not match its schema.
        """
        where = f"topic {record.topic}, partition {record.partition}, offset {record.offset}"
        framed = split(record.value)
        if isinstance(framed, WireFault):
            raise BrokenInvariantError(f"a result cannot be read: {framed.value}", place=where)
        schema = self.schema_of(framed.schema)
        if schema is None:
            raise BrokenInvariantError(f"no schema with {words(framed.schema)}", place=where)
        value: Mapping[str, Native] = decode(schema, schema, framed.body)
        return value

    def given(self, record: KafkaRecord, reader: AvroSchema) -> InputRecord:
        """An input record in the network's own schema, readable or not."""
        place = Place(record.topic, record.partition, record.offset)
        framed = identified(record.value, record.headers, Part.VALUE)
        if isinstance(framed, WireFault):
            return InputRecord(place, None)
        return InputRecord(place, self._fields(framed, reader))

    def _fields(self, framed: Framed, reader: AvroSchema) -> Fields | None:
        writer = self.schema_of(framed.schema)
        if writer is None:
            return None
        try:
            value: Mapping[str, Native] = decode(writer, reader, framed.body)
        except SchemaError:
            return None
        return {name: plain(content) for name, content in value.items()}
