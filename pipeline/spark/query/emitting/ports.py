"""Rows of the ports of a box."""

from collections.abc import Callable

from pyspark.sql import DataFrame

from pipeline.spark.query.lowered import Lowered, Path


def united(lowered: Lowered, rows_of: Callable[[Path], DataFrame]) -> dict[str, DataFrame]:
    """The rows of each port, united over its paths."""
    ports: dict[str, DataFrame] = {}
    for path in lowered.paths:
        rows = rows_of(path)
        ports[path.port] = ports[path.port].unionByName(rows) if path.port in ports else rows
    return ports
