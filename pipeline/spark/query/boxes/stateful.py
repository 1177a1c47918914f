"""What lowering a stateful box yields."""

from dataclasses import dataclass

from pipeline.spark.query.lowered import Core, Step


@dataclass(frozen=True, slots=True)
class LoweredBox:
    """`before` runs on every row ahead of the core, `after` on every result.

    `told` are hidden columns that results are computed from, each with what it is called where a
    result is told that cannot be computed.
    """

    before: tuple[Step, ...]
    core: Core
    after: tuple[Step, ...]
    told: tuple[tuple[str, str], ...] = ()
