"""Pass: refuse a bound of availability that is not below the retention of tentative results."""

from collections.abc import Iterator

from pipeline import durations
from pipeline.errors import DocumentError, Problem
from pipeline.planner.draft import Draft
from pipeline.planner.passes.list_topics import tentative_retention_ms


def check_bounds(draft: Draft) -> Draft:
    """Refuse such bounds of fragments that may be tentative.

    Raises:
        DocumentError: there is one.
    """
    problems = tuple(_too_long(draft))
    if problems:
        raise DocumentError(problems)
    return draft


def _too_long(draft: Draft) -> Iterator[Problem]:
    """Why tentative results would be removed before they may be published."""
    for fragment in draft.fragments:
        kept_ms = tentative_retention_ms(draft.network, fragment)
        bound = fragment.availability
        if bound is None or not fragment.may_be_tentative or bound.bound_ms < kept_ms:
            continue
        yield Problem(
            f"its availability bound of {durations.format(bound.bound_ms)} is not below the "
            f"retention of its tentative results, {durations.format(kept_ms)}",
            box=fragment.name,
            hint="write a shorter bound; they are kept for 1d, or as its output if that is less",
        )
