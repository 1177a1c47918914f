from collections.abc import Iterator

import pytest

from tests.system.support import Installation

NODE = "node_lanes"


@pytest.fixture(scope="session")
def node(medusa: Installation) -> Iterator[None]:
    """One node for all tests of this folder; each test has its own networks."""
    with medusa.node(NODE):
        yield


@pytest.fixture(autouse=True)
def _undeployed(undeployed: None) -> None:
    """Undeploys after each test: the node runs the networks of one test at a time."""
