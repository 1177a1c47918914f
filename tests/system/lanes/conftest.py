from collections.abc import Iterator

import pytest

from tests.system.support import Installation

NODE = "node_lanes"


@pytest.fixture(scope="session")
def node(medusa: Installation) -> Iterator[None]:
    """One node for all tests of this folder, each of which has networks of its own."""
    with medusa.node(NODE):
        yield


@pytest.fixture(autouse=True)
def _undeployed(undeployed: None) -> None:
    """The node runs the networks of one test at a time."""
