"""A start drops the cut of the next batch."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pipeline.lanes.start import plan
from tests.histories.replaced import replaced

KINDS = "restart,take_over"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """The next batch is planned anew."""
    begun_anew, rebuilt = plan.begun_anew, plan.rebuilt
    with (
        replaced(plan, "begun_anew", lambda *how: replace(begun_anew(*how), cut=None)),
        replaced(plan, "rebuilt", lambda *how: replace(rebuilt(*how), cut=None)),
    ):
        yield
