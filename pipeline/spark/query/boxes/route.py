"""Lowering of `route` (a column with the branch of each row) and of its branches."""

from pipeline.network import sql_text
from pipeline.network.boxes.route import BRANCH, Branch, Route
from pipeline.spark.query.lowered import Check, Keep, Project, Step
from pipeline.spark.query.sql import check, quoted


def lower(box: Route) -> tuple[Step, ...]:
    """One step; a second one if rows that match no condition are dropped."""
    passed = tuple(
        (column.name, quoted(column.name)) for column in box.columns if column.name != BRANCH
    )
    noted = Project((*passed, (BRANCH, _branch(box))), _checks(box))
    return (noted,) if box.otherwise else (noted, Keep(f"{quoted(BRANCH)} IS NOT NULL", ()))


def lower_branch(box: Branch) -> tuple[Step, ...]:
    """Two steps."""
    meant = f"{quoted(BRANCH)} = {sql_text.string(box.name)}"
    return Keep(meant, ()), Project(tuple((c.name, quoted(c.name)) for c in box.columns), ())


def _branch(box: Route) -> str:
    """The name of the first branch whose condition is true."""
    whens = "".join(f" WHEN {c.where.sql} THEN {sql_text.string(c.branch)}" for c in box.to)
    last = sql_text.string(box.otherwise) if box.otherwise else "NULL"
    return f"CASE{whens} ELSE {last} END"


def _checks(box: Route) -> tuple[Check, ...]:
    """A condition is evaluated, and can fail, if no earlier one is true."""
    found: list[Check] = []
    before = ""
    for choice in box.to:
        where = choice.where
        if where.failed is not None:
            found.append(check(where, f"{before}({where.failed})"))
        before += f"NOT coalesce({where.sql}, false) AND "
    return tuple(found)
