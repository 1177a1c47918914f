"""The examples in the docstrings of the brokers package."""

import doctest
from types import ModuleType

import pytest

from brokers import zookeeper
from brokers.kafka import config


@pytest.mark.parametrize("module", [zookeeper, config])
def test_examples_in_docstrings_are_true(module: ModuleType) -> None:
    """Every example gives what it says, and there is one."""
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
