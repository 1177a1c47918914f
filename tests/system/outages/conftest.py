from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.embedded.stack import EmbeddedStack
from schemas.embedded import start_registry
from tests.conftest import WaitFor, stack_settings
from tests.system.outages.brokers import SecondBroker, second_broker
from tests.system.outages.cases import NODE
from tests.system.support import Installation, installation


@pytest.fixture(scope="session")
def own_stack(tmp_path_factory: pytest.TempPathFactory, jar_cache: Path) -> Iterator[EmbeddedStack]:
    """A separate stack: with a second broker, topics of other tests would be on both."""
    settings = stack_settings(tmp_path_factory.mktemp("outages"), jar_cache)
    with EmbeddedStack(settings, start_registry) as stack:
        yield stack


@pytest.fixture(scope="session")
def second(
    own_stack: EmbeddedStack, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecondBroker]:
    """The second broker of that stack."""
    with second_broker(own_stack.settings, tmp_path_factory.mktemp("second")) as broker:
        yield broker


@pytest.fixture(scope="session")
def medusa(
    own_stack: EmbeddedStack, tmp_path_factory: pytest.TempPathFactory, wait_for: WaitFor
) -> Iterator[Installation]:
    """Clients of that stack, and a folder for nodes."""
    folder = tmp_path_factory.mktemp("nodes")
    with installation(own_stack.settings, folder, wait_for) as found:
        yield found


@pytest.fixture(scope="session")
def node(medusa: Installation, second: SecondBroker) -> Iterator[None]:
    """One node for all tests of this folder, which knows both brokers."""
    with medusa.node(NODE, {"kafka.bootstrap_servers": second.both}):
        yield


@pytest.fixture(autouse=True)
def _undeployed(undeployed: None) -> None:
    """Undeploys after each test: the node runs the networks of one test at a time."""
