import pytest


@pytest.fixture(autouse=True)
def _undeployed(undeployed: None) -> None:
    """A node runs the networks of one test."""
