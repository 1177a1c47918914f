"""A start drops the cut of the next batch."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pipeline.lanes.start import plan
from pipeline.lanes.start.markers import begun_anew, rebuilt
from tests.histories.replaced import replaced

KINDS = "restart,take_over"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """The next batch is planned anew."""
    with (
        replaced(plan, "begun_anew", lambda *how: replace(begun_anew(*how), cut=None)),
        replaced(plan, "rebuilt", lambda *how: replace(rebuilt(*how), cut=None)),
    ):
        yield
