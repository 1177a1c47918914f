"""A node that is suspected goes on writing after its fragments were claimed."""

from collections.abc import Iterator
from contextlib import contextmanager

from brokers.memory_kafka.broker import MemoryBroker
from tests.histories.replaced import replaced

KINDS = "suspect"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """The broker refuses no writer."""
    with replaced(MemoryBroker, "check_epoch", lambda *_: None):
        yield
