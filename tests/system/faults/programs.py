"""Programs of the tests that run Spark in a Java process of their own."""

from collections.abc import Sequence

from brokers.records import KafkaRecord
from pipeline.ids import Incarnation, ParticipantId
from pipeline.lanes.positions import Positions
from pipeline.network.document import SchemaText, load, schema_references
from pipeline.planner.plan import Fragment
from pipeline.planner.planner import plan
from pipeline.spark.from_memory import MemoryQueries, Write
from pipeline.spark.lowered import Lowered
from tests.system import tested
from tests.system.tested import ROOT


def lines_of(module: str, *arguments: str, within_s: float) -> list[str]:
    """What a module prints as a program; fails the test if it does not end well."""
    done = tested.run(ROOT, module, *arguments, within_s=within_s)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


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
    """Have a query read all records; `end` are the positions behind them."""
    query = start(lowered, Incarnation("test"), write)
    try:
        query.add(records, end)
        query.drain()
    finally:
        query.close()
