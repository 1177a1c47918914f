"""Lowering of `select`: compute columns."""

from pipeline.network.model import Computed
from pipeline.spark.query.lowered import Project
from pipeline.spark.query.sql import checks


def selected(select: tuple[Computed, ...]) -> Project:
    """One step."""
    columns = tuple((computed.name, computed.expression.sql) for computed in select)
    return Project(columns, checks(computed.expression for computed in select))
