import pytest

from tests.unit.agent.support import CARS, Agent, deployed


@pytest.fixture
def agent() -> Agent:
    """An agent with a running lane over one external stream."""
    agent = Agent()
    agent.read_catalog(deployed())
    agent.started(CARS)
    return agent
