import doctest

from pipeline import nearest
from pipeline.nearest import near, nearest_first


def test_examples() -> None:
    """What the documentation shows is so."""
    assert doctest.testmod(nearest).failed == 0


def test_nearest_first_keeps_all_names() -> None:
    """The names that look alike come first, with no name lost or repeated."""
    names = ("join", "map", "Filter", "filter")
    assert nearest_first("filtr", names) == ("Filter", "filter", "join", "map")
    assert nearest_first("", names) == names


def test_nothing_is_near_what_is_quite_different() -> None:
    """A name that resembles none has none near it."""
    assert near("prices", ("car-sightings",)) == ()
