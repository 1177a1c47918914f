"""Order of versions."""

import doctest
from itertools import pairwise

from pipeline.operations import program_versions
from pipeline.operations.program_versions import is_earlier

IN_ORDER = ("0.1.0.dev1", "0.1.0", "0.1.1", "0.2.0rc1", "0.2.0", "0.10.0", "1.0", "10.0.1")


def test_examples_in_docstrings_hold() -> None:
    """The doctests of the module pass."""
    assert doctest.testmod(program_versions).failed == 0


def test_versions_are_ordered() -> None:
    """By numbers, not as text; a version is not before itself."""
    for one, other in pairwise(IN_ORDER):
        assert is_earlier(one, other)
        assert not is_earlier(other, one)
        assert not is_earlier(one, one)


def test_what_has_no_order_is_not_earlier() -> None:
    """Local and post releases, preliminary versions of one release, and other text."""
    for one in ("0.1.0+local", "0.1.0.post1", "", "main"):
        assert not is_earlier(one, "0.1.0")
        assert not is_earlier("0.1.0", one)
    assert not is_earlier("0.2.0a1", "0.2.0rc1")
