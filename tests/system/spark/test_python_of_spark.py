"""Spark's Python workers: their interpreter and their environment."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

ENDS_WITHIN_S = 180.0
PROGRAM = """
import json, os, pathlib, sys
import pyarrow as pa
from brokers.embedded.jars import spark_jars
from pipeline.spark.session.session import SessionSettings, close_session, open_session

cache, scratch = map(pathlib.Path, sys.argv[1:])


def seen(batches):
    for _ in batches:
        began_with = pathlib.Path("/proc/self/environ").read_bytes().decode(errors="replace")
        variables = [os.environ["KAFKA_PASSWORD"], os.environ["OTHER"]]
        yield pa.record_batch({"told": [sys.executable, *variables, began_with]})


spark = open_session(
    SessionSettings(
        app="seen",
        master="local[1]",
        memory="512m",
        jars=spark_jars(cache),
        scratch=scratch,
        withheld=frozenset({"KAFKA_PASSWORD"}),
    )
)
rows = spark.range(1).mapInArrow(seen, "told string").collect()
close_session(spark)
print(json.dumps([row["told"] for row in rows]))
"""


def test_python_workers_have_no_secrets_of_the_node(tmp_path: Path, jar_cache: Path) -> None:
    """They run the same interpreter, with the node's environment minus the secrets."""
    own = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    variables = {"KAFKA_PASSWORD": "of Kafka", "OTHER": "kept", "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, str(jar_cache), str(tmp_path)],
        env={**own, **variables},
        capture_output=True,
        text=True,
        timeout=ENDS_WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    python, password, other, began_with = json.loads(done.stdout.splitlines()[-1])
    assert (python, password, other) == (sys.executable, "", "kept")
    assert "of Kafka" not in began_with
