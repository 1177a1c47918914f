"""Plans that pass through Spark's optimiser once: it changes nothing when it runs for a batch."""

import re

import pytest
from pyspark.sql import SparkSession

from pipeline.spark.query.emit import emit
from pipeline.spark.query.readers import KafkaReader
from tests.system.spark.support import fragments_of
from tests.system.steered.cases import KINDS, SCHEMA, document, is_possible
from tests.system.steered.runs import lowered_of

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]
OPTIONS = {"kafka.bootstrap.servers": "127.0.0.1:1"}
"""Of a server that is never asked: no query is started."""


def without_ids(plan: str) -> str:
    """The text of a plan; ids of expressions are numbered in the order of the text."""
    numbers: dict[str, int] = {}
    return re.sub(r"#\d+", lambda found: f"#{numbers.setdefault(found[0], len(numbers))}", plan)


@pytest.mark.parametrize(
    ("kind", "sources"), [(kind, n) for kind in KINDS for n in (1, 2, 4) if is_possible(kind, n)]
)
def test_an_optimised_plan_stays_as_it_is(kind: str, sources: int, spark: SparkSession) -> None:
    """So a batch executes what it would without; and each leaf of the plan is still there."""
    text = document(kind, sources, f"optimised_{kind}_{sources}")
    (fragment,) = (one for one in fragments_of(text, "x", SCHEMA) if one.name == "out")
    lowered = lowered_of(fragment)
    starts = {
        source.input: {t.topic: dict.fromkeys(range(t.partitions), 0) for t in source.topics}
        for source in lowered.sources
    }
    rows = emit(lowered, KafkaReader(spark, OPTIONS, starts))
    once = rows._jdf.queryExecution().analyzed()
    again = spark._jsparkSession.sessionState().optimizer().execute(once)
    assert once.collectLeaves().size() == len(lowered.leaves)
    assert without_ids(again.toString()) == without_ids(once.toString())
