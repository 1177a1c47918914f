"""Another reliability is another plan of a fragment."""

from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.planner import digest
from pipeline.planner.plan import Fragment
from tests.histories.replaced import replaced

KINDS = "reliability"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """The digest of a fragment contains its reliability."""
    ignored = {**digest._LEFT_OUT, Fragment: frozenset({"nodes", "apart", "priority"})}
    with replaced(digest, "_LEFT_OUT", ignored):
        yield
