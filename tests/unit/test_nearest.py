import doctest

from pipeline import nearest
from pipeline.nearest import near, nearest_first


def test_examples() -> None:
    """The examples in the docstrings are correct."""
    assert doctest.testmod(nearest).failed == 0


def test_nearest_first_keeps_all_names() -> None:
    """Similar names come first, with no name lost or repeated."""
    names = ("join", "map", "Filter", "filter")
    assert nearest_first("filtr", names) == ("Filter", "filter", "join", "map")
    assert nearest_first("", names) == names


def test_different_names_are_not_similar() -> None:
    """A name that resembles none has none near it."""
    assert near("prices", ("car-sightings",)) == ()
