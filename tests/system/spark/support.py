"""In-memory runs of networks and fragments."""

from collections.abc import Sequence
from pathlib import Path

from brokers.records import KafkaRecord
from pipeline.ids import ParticipantId
from pipeline.markers.positions import Positions
from pipeline.network.document import SchemaText, load, schema_references
from pipeline.planner.plan import Fragment
from pipeline.planner.planner import plan
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.from_memory import MemoryQueries, Write
from pipeline.testing.load import Loader, find_tests
from pipeline.testing.run import run_steps

ROW_SCHEMA = """
{"type": "record", "name": "Row", "fields": [
  {"name": "item", "type": "string"},
  {"name": "amount", "type": "long"},
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
]}
"""
"""Rows of an item and an amount at a time."""


def failures(folder: Path, queries: MemoryQueries) -> list[str]:
    """Run the tests of a project as `medusa test` does; returns messages of the failed steps."""
    loaded = Loader(lambda: folder / "network.yaml").all(find_tests((), folder / "tests"))
    return [str(failure) for one in loaded for failure in run_steps(one.test, queries, one.file)]


def fragments_of(document: str, name: str, schema: str) -> tuple[Fragment, ...]:
    """The fragments of a network whose streams all have one schema."""
    references = schema_references(document, name)
    network = load(document, name, {one: SchemaText(schema, one.value) for one in references})
    return plan(network, ParticipantId("me")).fragments


def run(
    start: MemoryQueries,
    lowered: Lowered,
    write: Write,
    records: Sequence[KafkaRecord],
    end: Positions,
) -> None:
    """Run a query over all records; `end` are the positions after them."""
    query = start(lowered, write)
    try:
        query.add(records, end)
        query.drain()
    finally:
        query.close()
