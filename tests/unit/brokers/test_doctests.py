"""Doctests of the brokers package."""

import doctest
from types import ModuleType

import pytest

from brokers import zookeeper
from brokers.kafka import config


@pytest.mark.parametrize("module", [zookeeper, config])
def test_examples_in_docstrings_are_correct(module: ModuleType) -> None:
    """Every example has the stated result, and there is one."""
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
