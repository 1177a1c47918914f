import doctest
import importlib
import pkgutil

import pytest

import pipeline.planner

_MODULES = [
    info.name
    for info in pkgutil.walk_packages(pipeline.planner.__path__, "pipeline.planner.")
    if not info.ispkg
]
_WITH_EXAMPLES = {"rename", "instants"}


@pytest.mark.parametrize("name", _MODULES)
def test_examples_in_docstrings_are_correct(name: str) -> None:
    """Every example in the planner's docstrings has the stated result."""
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0
    if name.rpartition(".")[2] in _WITH_EXAMPLES:
        assert found.attempted > 0
