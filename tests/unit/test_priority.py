"""Priorities."""

from pipeline.priority import Priority, highest


def test_high_comes_before_normal_and_normal_before_low() -> None:
    """The default is the one in the middle."""
    order = sorted(Priority, key=lambda one: one.order)
    assert order == [Priority.HIGH, Priority.NORMAL, Priority.LOW]


def test_the_highest_of_several() -> None:
    """Of none it is the default."""
    assert highest([Priority.LOW, Priority.NORMAL], Priority.HIGH) is Priority.NORMAL
    assert highest(iter([Priority.NORMAL, Priority.HIGH]), Priority.LOW) is Priority.HIGH
    assert highest([], Priority.LOW) is Priority.LOW
