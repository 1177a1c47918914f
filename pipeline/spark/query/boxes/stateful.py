"""Lowered form of a stateful box."""

from dataclasses import dataclass

from pipeline.spark.query.lowered import Core, Step


@dataclass(frozen=True, slots=True)
class LoweredBox:
    """Core of a stateful box; `before` runs on its input rows, `after` on its results.

    `labels`: hidden columns that results are computed from, each with its name in the report of a
    result that cannot be computed.
    """

    before: tuple[Step, ...]
    core: Core
    after: tuple[Step, ...]
    labels: tuple[tuple[str, str], ...] = ()
