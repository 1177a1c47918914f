"""Fast validation of the records of a stateless fragment: each record is fit or unfit.

Spark plans a query anew for each batch, and the time of a small batch grows with the size of its
plan. So the reason of an unfit record is not computed here, but by inspection, if there are any.
An unfit row has the first bytes of its value, from which `counted.py` reads a schema that the query
was not planned with.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.spark.query import hidden
from pipeline.spark.query.emitting import decoded
from pipeline.spark.query.emitting.judged import columns_of, event_time, is_unfit, of_kafka
from pipeline.spark.query.emitting.record_filter import record_filter, sent_to
from pipeline.spark.query.lowered import Lowered, Path, TopicRole

CARRIED = (hidden.ORIGIN, hidden.EVENT_MS, hidden.UNREAD)
"""Columns of a record kept in its row, in addition to those of its result."""
UNREAD_BYTES = 32
"""First bytes kept of an unfit value: a schema prefix is shorter."""


def sifted(raw: DataFrame, lowered: Lowered, path: Path) -> DataFrame:
    """The records of a path's source; `raw` has Kafka's columns.

    Unneeded columns are dropped at once: each column in each step costs time.
    """
    source = lowered.source(path.source)
    placed = (*hidden.PLACE, hidden.HEADERS) if lowered.ids else (hidden.PARTITION,)
    if source.skipped_ms is not None:
        placed = tuple(dict.fromkeys((*placed, hidden.TOPIC)))
    rows = decoded.framed(of_kafka(raw).where(record_filter(source, (path.name,))), source)
    rows = rows.select(
        *placed,
        hidden.KEY,
        hidden.KAFKA_TIME,
        hidden.FRAMED,
        _origin(lowered, path).alias(hidden.ORIGIN),
        decoded.record(source).alias(hidden.ROW),
    )
    rows = rows.select("*", *columns_of(source))
    rows = rows.withColumn(hidden.EVENT_MS, F.unix_millis(event_time(source)))
    reason = F.when(is_unfit(source), hidden.UNFIT)
    if source.skipped_ms is not None:
        own = F.col(hidden.TOPIC) == source.data.topic
        reason = reason.when(own & (F.col(hidden.EVENT_MS) <= source.skipped_ms), hidden.SKIPPED)
    rows = rows.withColumn(hidden.REASON, reason)
    is_unread = F.col(hidden.REASON) == hidden.UNFIT
    if not path.first:
        is_unread &= F.col(hidden.ORIGIN).isNotNull()
    beginning = F.substring(hidden.FRAMED, 1, UNREAD_BYTES)
    return rows.withColumn(hidden.UNREAD, F.when(is_unread, beginning))


def _origin(lowered: Lowered, path: Path) -> Column:
    """The topic of a record, on the one path on which it counts: see `sent_to`."""
    source = lowered.source(path.source)
    places = lowered.places(source)
    if not path.first:
        again = F.lit(places.get(TopicRole.REDRIVE)).cast("int")
        return F.when(sent_to(source, path), again)
    *others, last = places.values()
    origin = F.lit(last)
    for place in reversed(others):
        _, topic = lowered.origins[place]
        origin = F.when(F.col(hidden.TOPIC) == topic.topic, place).otherwise(origin)
    return origin
