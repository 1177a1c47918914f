"""Record filters: the records of a source's topics that belong to a path."""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.lanes.dead_letters import PREFIX
from pipeline.spark.query import hidden
from pipeline.spark.query.emitting.headers import header
from pipeline.spark.query.lowered import Path, Source, TopicRole


def record_filter(source: Source, paths: tuple[str, ...]) -> Column:
    """Filter for the stream's records, and records redriven to these paths."""
    redriven = (header(f"{PREFIX}source") == _literal(source.id)) & is_for(("", *paths))
    return ~is_sent_again(source) | redriven


def is_sent_again(source: Source) -> Column:
    """Whether a record is from the redrive topic; a source may have none."""
    topic = source.topic(TopicRole.REDRIVE)
    return F.lit(False) if topic is None else F.col(hidden.TOPIC) == topic


def sent_to(source: Source, path: Path) -> Column:
    """Whether a record was redriven to this path only.

    It counts on this path, since no other reads it; others count on the source's first path.
    """
    return is_sent_again(source) & is_for((path.name,))


def is_for(paths: tuple[str, ...]) -> Column:
    """Whether a redriven record is for one of some paths; an empty name: for all.

    There is only one such header: a redrive removes earlier ones.
    """
    return header(f"{PREFIX}port").isin([_literal(path) for path in paths])


def _literal(text: str) -> Column:
    return F.lit(text.encode())
