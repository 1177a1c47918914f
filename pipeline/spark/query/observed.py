"""Batch metrics from what Spark has observed of a batch; `emitting/observing.py` says what. Pure.

Used if records go into a state, or to a function; see `counted.py` for others.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pipeline.spark.query.lowered import AssignedTopic, Lowered, TopicRole
from pipeline.spark.query.metrics import BatchMetrics, most_advanced, schemas_of

SOURCE_METRICS: Final = "source_"
"""Beginning of the name of an observation: of the records of an input, whose name follows."""
PATH_METRICS: Final = "path_"
"""The same of the failures on a path."""
Observations = Mapping[str, Mapping[str, Any]]
"""Name of an observation → its values; those that are null are missing."""


def observed(found: Observations, lowered: Lowered) -> BatchMetrics:
    """The metrics of a batch.

    Args:
        found: everything that was observed of it.
        lowered: the fragment.
    """
    sources = [(one, found.get(f"{SOURCE_METRICS}{one.input}", {})) for one in lowered.sources]
    failures = {path.name: found.get(f"{PATH_METRICS}{path.name}", {}) for path in lowered.paths}
    bad = sum(int(row.get("bad") or 0) for row in failures.values())
    return BatchMetrics(
        records=sum(int(row.get("rows") or 0) for _, row in sources),
        bad=bad + sum(int(row.get("bad") or 0) for _, row in sources),
        unknown=schemas_of(
            bytes.fromhex(prefix)
            for _, row in sources
            if (prefix := row.get("unknown")) is not None
        ),
        largest={
            at: time
            for source, row in sources
            for topic in source.topics
            for partition, value in _of_topic(row, topic)
            for at, time in most_advanced(source, topic, partition, value)
        },
        skipped=sum(int(row.get("skipped") or 0) for _, row in sources),
        failed={
            path.name: int(failures[path.name].get("failed") or 0)
            for path in lowered.paths
            if path.calls
        },
    )


def _of_topic(row: Mapping[str, Any], topic: AssignedTopic) -> Iterator[tuple[int, int]]:
    """Partitions of a topic with their largest observed event time."""
    if topic.role is TopicRole.REDRIVE and row.get("redriven") is not None:
        yield 0, int(row["redriven"])
    if topic.role is TopicRole.DATA:
        for partition in range(topic.partitions):
            if (value := row.get(f"partition_{partition}")) is not None:
                yield partition, int(value)
