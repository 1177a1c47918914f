"""One Spark session with a node's settings, and one embedded stack."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from brokers.embedded.java import find_java
from pipeline.cli.project import load_project
from pipeline.spark.run.steered_query import check_steerable
from pipeline.spark.session.session import close_session, open_session, session_settings


@pytest.fixture(scope="session")
def node_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session as of a node."""
    settings = load_project({}, os.environ, Path.cwd()).settings
    scratch = tmp_path_factory.mktemp("session")
    wanted = session_settings(settings, "steered", scratch, find_java(os.environ))
    spark = open_session(replace(wanted, master="local[2]"))
    check_steerable(spark)
    yield spark
    close_session(spark)
