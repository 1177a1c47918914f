"""Lowering of `deduplicate`: rows without an earlier one of the same key within the bound."""

from pipeline.network.boxes.deduplicate import Deduplicate
from pipeline.spark.query.boxes.stateful import LoweredBox
from pipeline.spark.query.lowered import DeduplicateCore


def lower(box: Deduplicate) -> LoweredBox:
    """One core."""
    return LoweredBox((), DeduplicateCore(box.by, box.within_ms), ())
