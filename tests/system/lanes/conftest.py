from collections.abc import Iterator

import pytest

from brokers.embedded.stack import EmbeddedStack
from pipeline.deploy.remove import stop
from tests.conftest import WaitFor
from tests.system.lanes.support import Installation, installation


@pytest.fixture(scope="session")
def medusa(
    embedded_stack: EmbeddedStack, tmp_path_factory: pytest.TempPathFactory, wait_for: WaitFor
) -> Iterator[Installation]:
    """Clients of the stack, and a folder for nodes."""
    folder = tmp_path_factory.mktemp("nodes")
    with installation(embedded_stack.settings, folder, wait_for) as found:
        yield found


@pytest.fixture(scope="module")
def node(medusa: Installation, request: pytest.FixtureRequest) -> Iterator[None]:
    """One node for the tests of a module."""
    with medusa.node(f"node_{request.module.__name__.rpartition('.')[2]}"):
        yield


@pytest.fixture(scope="module", autouse=True)
def _undeployed(medusa: Installation) -> Iterator[None]:
    """No later node has to run what the tests of a module have left deployed."""
    yield
    for record in medusa.catalog.networks():
        stop(record.network, medusa.catalog)
