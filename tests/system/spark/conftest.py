"""One Spark session in one Java process for all tests that need Spark and no servers.

The options of a Java process are those of the session that starts it, so every session of this
process comes from here. A test that is interrupted at its time limit leaves the connection to Java
unusable for the tests after it, so their limits are for a machine that is busy with other things.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.cli.project import load_project
from pipeline.spark.run.from_memory import MemoryQueries
from pipeline.testing.session import open_tests

ROOT = Path(__file__).parents[3]
EXPRESSION_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
"""SQL settings that affect the results of expressions, with a node's values."""


@pytest.fixture(scope="session")
def queries() -> Iterator[MemoryQueries]:
    """Memory queries in the session that `medusa test` opens."""
    with open_tests(load_project({}, os.environ, ROOT).settings) as found:
        yield found


@pytest.fixture(scope="session")
def spark(queries: MemoryQueries) -> SparkSession:
    """Another session of the same Java process, without the SQL settings of memory queries.

    It generates code, as a node's session does; that of memory queries interprets expressions.
    """
    session = queries._spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    assert {name: session.conf.get(name) for name in EXPRESSION_SETTINGS} == EXPRESSION_SETTINGS
    return session
