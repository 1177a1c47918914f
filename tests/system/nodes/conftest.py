import pytest


@pytest.fixture(autouse=True)
def _undeployed(undeployed: None) -> None:
    """Undeploys after each test: a node runs the networks of one test at a time."""
