"""Cases with an availability bound, whose results are tentative while input is missing."""

from dataclasses import replace

from tests.faults.case import Case
from tests.faults.cases.outer_join import OUTER_JOIN
from tests.faults.cases.window import WINDOW

BOUND = "3s"
"""A fork is begun after half of it at the earliest, and is ready some seconds later."""


def bounded(case: Case, policy: str) -> Case:
    """A case with a bound."""
    availability = f"availability: {{bound: {BOUND}, policy: {policy}}}\n"
    return replace(case, name=f"{case.name}_bounded", document=case.document + availability)


WINDOW_BOUNDED = bounded(WINDOW, "process")
OUTER_JOIN_BOUNDED = bounded(OUTER_JOIN, "delay")
