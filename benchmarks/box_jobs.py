"""Each kind of box in plain PySpark; Medusa's is `kinds/NAME.yaml`.

A job maps the decoded readings of each topic to records: key, value, timestamp_ms,
partition (-1: by the key), and a topic where not all go to one.
"""

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import functions as F  # noqa: N812 - the usual alias in Spark programs

from benchmarks.kinds import JOINED_WITHIN_MS, KEPT, KINDS, LATENESS_MS, rest_of
from benchmarks.plain_pyspark import encoded, python

READING = ("sensor", "site", "note", "celsius", "humidity", "count", "at")
CONVERTED = ("sensor", "site", "fahrenheit", "humidity", "at")
AVERAGE = ("site", "window_start", "window_end", "celsius", "readings")
_KINDS = {**KINDS, **KEPT}
DELAY = f"{LATENESS_MS} milliseconds"
Job = Callable[[Sequence[DataFrame], str], DataFrame]
"""(readings of each topic, output topic) → records."""


def passed(rows: DataFrame, kind: str, columns: tuple[str, ...]) -> DataFrame:
    """Rows as records that keep their key and their partition."""
    return rows.select(
        "key",
        encoded(columns, _KINDS[kind].schema).alias("value"),
        F.unix_millis("at").alias("timestamp_ms"),
        "partition",
    )


def keyed(rows: DataFrame, kind: str, columns: tuple[str, ...], at: str) -> DataFrame:
    """Rows as records with their first column as key."""
    return rows.select(
        F.col(columns[0]).cast("binary").alias("key"),
        encoded(columns, _KINDS[kind].schema).alias("value"),
        F.unix_millis(F.expr(at)).alias("timestamp_ms"),
        F.lit(-1).alias("partition"),
    )


def filtered(sources: Sequence[DataFrame], _target: str) -> DataFrame:
    """Warm readings."""
    return passed(sources[0].where("celsius >= 10"), "filter", READING)


def mapped(sources: Sequence[DataFrame], _target: str) -> DataFrame:
    """Readings in Fahrenheit."""
    converted = sources[0].withColumn("fahrenheit", F.col("celsius") * 1.8 + 32)
    return passed(converted, "map", CONVERTED)


def united(sources: Sequence[DataFrame], _target: str) -> DataFrame:
    """The readings of both topics."""
    return passed(sources[0].union(sources[1]), "union", READING)


def exploded(sources: Sequence[DataFrame], _target: str) -> DataFrame:
    """A row for each part of the site's name."""
    parts = sources[0].withColumn("part", F.explode(F.split("site", "-")))
    return passed(parts, "flat_map", ("sensor", "part", "celsius", "at"))


def routed(sources: Sequence[DataFrame], target: str) -> DataFrame:
    """Warm readings to one topic, the others to another one."""
    warm = F.expr("coalesce(celsius >= 10, false)")
    topic = F.when(warm, target).otherwise(rest_of(target))
    return sources[0].select(
        "key",
        encoded(READING, _KINDS["route"].schema).alias("value"),
        F.unix_millis("at").alias("timestamp_ms"),
        "partition",
        topic.alias("topic"),
    )


def through_python(sources: Sequence[DataFrame], _target: str) -> DataFrame:
    """Readings in Fahrenheit, by a function over Arrow record batches."""
    return python(sources[0])


def averaged(kind: str, *window: str) -> Job:
    """Averages of each site."""

    def job(sources: Sequence[DataFrame], _target: str) -> DataFrame:
        rows = sources[0].withWatermark("at", DELAY)
        grouped = rows.groupBy(F.window("at", *window), "site")
        return keyed(_averages(grouped), kind, AVERAGE, "window_end")

    return job


def sessions(kind: str, gap: str) -> Job:
    """Averages of each sensor's sessions."""

    def job(sources: Sequence[DataFrame], _target: str) -> DataFrame:
        rows = sources[0].withWatermark("at", DELAY)
        grouped = rows.groupBy(F.session_window("at", gap).alias("window"), "sensor")
        columns = ("sensor", *AVERAGE[1:])
        return keyed(_averages(grouped), kind, columns, "window_end")

    return job


def _averages(grouped: GroupedData) -> DataFrame:
    rows = grouped.agg(F.expr("avg(celsius) AS celsius"), F.expr("count(*) AS readings"))
    return rows.withColumns(
        {"window_start": F.col("window.start"), "window_end": F.col("window.end")}
    )


def highest(sources: Sequence[DataFrame], _target: str) -> DataFrame:
    """The three warmest readings of each second and site, out of a list of all."""
    rows = sources[0].withWatermark("at", DELAY)
    compared = F.struct("celsius", "at", "partition", "offset", "sensor")
    grouped = rows.groupBy(F.window("at", "1 second"), "site")
    lists = grouped.agg(F.collect_list(compared).alias("all"))
    first = F.slice(F.sort_array("all", asc=False), 1, 3)
    ranked = lists.select("window", "site", F.posexplode(first).alias("place", "row"))
    named = ranked.select(
        "site",
        F.col("window.start").alias("window_start"),
        F.col("window.end").alias("window_end"),
        (F.col("place") + 1).alias("rank"),
        "row.sensor",
        "row.celsius",
    )
    columns = ("site", "window_start", "window_end", "rank", "sensor", "celsius")
    return keyed(named, "top", columns, "window_end")


def joined(kind: str, how: str, within_ms: int = JOINED_WITHIN_MS) -> Job:
    """Readings of two topics of the same sensor within a bound."""
    near = (
        f"l.sensor = r.sensor AND l.at >= r.at - INTERVAL {within_ms} MILLISECONDS "
        f"AND l.at <= r.at + INTERVAL {within_ms} MILLISECONDS"
    )

    def job(sources: Sequence[DataFrame], _target: str) -> DataFrame:
        left, right = (rows.withWatermark("at", DELAY) for rows in sources)
        pairs = left.alias("l").join(right.alias("r"), F.expr(near), how)
        named = pairs.select(
            F.expr("coalesce(l.sensor, r.sensor) AS sensor"),
            "l.celsius",
            F.col("r.celsius").alias("other"),
            "l.at",
            F.col("r.at").alias("other_at"),
        )
        columns = ("sensor", "celsius", "other", "at", "other_at")
        # `greatest` ignores null
        return keyed(named, kind, columns, "greatest(at, other_at)")

    return job


def deduplicated(sources: Sequence[DataFrame], _target: str) -> DataFrame:
    """Readings without duplicates of the same sensor within the watermark."""
    rows = sources[0].withWatermark("at", "2 seconds")
    return passed(rows.dropDuplicatesWithinWatermark(["sensor"]), "deduplicate", READING)


JOBS: Mapping[str, Job] = {
    "filter": filtered,
    "map": mapped,
    "union": united,
    "flat_map": exploded,
    "route": routed,
    "python": through_python,
    "tumbling": averaged("tumbling", "1 second"),
    "sliding": averaged("sliding", "4 seconds", "1 second"),
    "session": sessions("session", "2 seconds"),
    "top": highest,
    "inner_join": joined("inner_join", "inner"),
    "left_join": joined("left_join", "left"),
    "full_join": joined("full_join", "full"),
    "as_of": joined("as_of", "inner"),
    "deduplicate": deduplicated,
    "kept_join": joined("kept_join", "inner", 3_600_000),
    "kept_session": sessions("kept_session", "1 hour"),
}
