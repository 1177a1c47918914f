"""Names of a module or class that stand for something else for a while."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def replaced(place: object, name: str, value: object) -> Iterator[None]:
    """Let a name be `value` while this is open; it has to be there."""
    before = getattr(place, name)
    setattr(place, name, value)
    try:
        yield
    finally:
        setattr(place, name, before)
