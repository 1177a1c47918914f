"""Lowering of `python`: call the function with the rows."""

from pipeline.network.boxes.python import Python
from pipeline.spark.query.lowered import Call, Step
from pipeline.user_code.function import Function


def lower(box: Python) -> tuple[Step, ...]:
    """One step."""
    return (Call(box.name, Function(box.function, box.source, box.columns, box.timeout_ms)),)
