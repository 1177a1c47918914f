"""Which records of its topics a source hands to a path, and whose they are to count."""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.ids import Incarnation
from pipeline.lanes.dead_letters import PREFIX
from pipeline.spark.query import hidden
from pipeline.spark.query.emitting.headers import header
from pipeline.spark.query.lowered import Path, Source, TopicRole


def wanted(source: Source, paths: tuple[str, ...]) -> Column:
    """The stream's records, redriven ones for these paths, and all advances."""
    redriven = (header(f"{PREFIX}source") == _literal(source.id)) & is_for(("", *paths))
    return ~is_sent_again(source) | redriven


def is_sent_again(source: Source) -> Column:
    """Whether a record comes from the redrive topic; a source may read none."""
    topic = source.topic(TopicRole.REDRIVE)
    return F.lit(False) if topic is None else F.col(hidden.TOPIC) == topic


def is_heeded(source: Source, incarnation: Incarnation) -> Column:
    """Whether a record is not an advance for another incarnation."""
    text = F.col(hidden.VALUE).cast("string")
    told = F.get_json_object(text, "$.incarnation") == incarnation
    return (F.col(hidden.TOPIC) != advances_of(source)) | told


def sent_to(source: Source, path: Path) -> Column:
    """Whether a record was sent again to this path and to no other one.

    It counts there, since no other path reads it; every other record on the first path of its
    source.
    """
    return is_sent_again(source) & is_for((path.name,))


def is_for(paths: tuple[str, ...]) -> Column:
    """Whether a record that was sent again is for one of some paths; an empty name: for all.

    Only one header says so: whoever sends it again takes away those that the record had.
    """
    return header(f"{PREFIX}port").isin([_literal(path) for path in paths])


def _literal(text: str) -> Column:
    return F.lit(text.encode())


def advances_of(source: Source) -> str:
    """The topic of the advances that a source reads."""
    topic = source.topic(TopicRole.ADVANCES)
    assert topic is not None, "lowering assigns the advances topic to every source"  # noqa: S101
    return topic
