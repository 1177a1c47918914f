"""The watermark of a batch is in force one batch early: the batch's own records are late by it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tests.histories import engine
from tests.histories.replaced import replaced

KINDS = "restart"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """Records are late by the watermark that closes windows in the same batch."""
    planned = engine.planned

    def early(frame: Any, folder: Any) -> engine.Batch | None:
        found = planned(frame, folder)
        return None if found is None else replace(found, late_ms=found.eviction_ms)

    with replaced(engine, "planned", early):
        yield
