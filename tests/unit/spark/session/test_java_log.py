"""Which levels loggers of Java's get; without Java."""

from types import SimpleNamespace
from typing import cast

from pyspark.sql import SparkSession

from pipeline.spark.session.java_log import ENGINE, LEVEL, set_log_levels, silenced

BROADCAST = "org.apache.spark.broadcast.TorrentBroadcast"
"""It calls an error what was interrupted because its query was stopped."""


class Levels:
    """A session of which only the loggers are there."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}
        configurator = SimpleNamespace(setLevel=self.of.__setitem__)
        core = SimpleNamespace(config=SimpleNamespace(Configurator=configurator))
        log4j = SimpleNamespace(core=core, Level=SimpleNamespace(toLevel=str))
        logging = SimpleNamespace(log4j=log4j)
        jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(logging=logging)))
        context = SimpleNamespace(_jvm=jvm)
        self.session = cast("SparkSession", SimpleNamespace(sparkContext=context))


def test_what_is_meant_to_be_so_is_not_logged() -> None:
    """Errors of queries are."""
    levels = Levels()
    set_log_levels(levels.session)
    assert levels.of[BROADCAST] == "OFF"
    assert ENGINE not in levels.of


def test_a_logger_that_was_silenced_says_what_it_said_before() -> None:
    """One that is noisy does not become so again."""
    levels = Levels()
    set_log_levels(levels.session)
    before = dict(levels.of)
    for logger in (ENGINE, BROADCAST):
        with silenced(levels.session, logger):
            assert levels.of[logger] == "OFF"
    assert levels.of == {**before, ENGINE: LEVEL}
