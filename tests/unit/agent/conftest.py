from collections.abc import Callable

import pytest

from tests.unit.agent import performers
from tests.unit.agent.performers import Node
from tests.unit.agent.support import CARS, Agent, deployed


@pytest.fixture
def agent() -> Agent:
    """An agent with a running lane over one external stream."""
    agent = Agent()
    agent.read_catalog(deployed())
    agent.started(CARS)
    return agent


@pytest.fixture
def make_node() -> Callable[[Exception | None], Node]:
    """Makes nodes over an in-memory catalog with one deployed fragment."""
    return performers.make_node()
