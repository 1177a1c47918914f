"""Levels of Java's loggers; without Java."""

from types import SimpleNamespace
from typing import cast

from pyspark.sql import SparkSession

from pipeline.spark.session.java_log import ENGINE, LEVEL, set_log_levels, silenced

BROADCAST = "org.apache.spark.broadcast.TorrentBroadcast"
"""It calls an error what was interrupted because its query was stopped."""


class Levels:
    """A session with loggers only."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}
        configurator = SimpleNamespace(setLevel=self.of.__setitem__)
        core = SimpleNamespace(config=SimpleNamespace(Configurator=configurator))
        log4j = SimpleNamespace(core=core, Level=SimpleNamespace(toLevel=str))
        logging = SimpleNamespace(log4j=log4j)
        jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(logging=logging)))
        context = SimpleNamespace(_jvm=jvm)
        self.session = cast("SparkSession", SimpleNamespace(sparkContext=context))


def test_expected_errors_are_not_logged() -> None:
    """Errors of queries are."""
    levels = Levels()
    set_log_levels(levels.session)
    assert levels.of[BROADCAST] == "OFF"
    assert ENGINE not in levels.of


def test_a_silenced_logger_gets_its_former_level() -> None:
    """A noisy one stays silenced."""
    levels = Levels()
    set_log_levels(levels.session)
    before = dict(levels.of)
    for logger in (ENGINE, BROADCAST):
        with silenced(levels.session, logger):
            assert levels.of[logger] == "OFF"
    assert levels.of == {**before, ENGINE: LEVEL}
