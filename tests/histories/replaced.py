"""Temporary replacement of attributes."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def replaced(place: object, name: str, value: object) -> Iterator[None]:
    """Replace an existing attribute by `value` during the block."""
    before = getattr(place, name)
    setattr(place, name, value)
    try:
        yield
    finally:
        setattr(place, name, before)
