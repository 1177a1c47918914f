"""How each kind of box is lowered: one small file per kind, and this table."""

from pipeline.spark.query.boxes.table import lower_stateful, lower_stateless

__all__ = ["lower_stateful", "lower_stateless"]
