"""What lowering a stateful box yields."""

from dataclasses import dataclass

from pipeline.spark.lowered import Core, Step


@dataclass(frozen=True, slots=True)
class LoweredBox:
    """`before` runs on every row ahead of the core, `after` on every result."""

    before: tuple[Step, ...]
    core: Core
    after: tuple[Step, ...]
