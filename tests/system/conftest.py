from collections.abc import Iterator

import pytest

from brokers.embedded.stack import EmbeddedStack
from pipeline.deploy.remove import stop
from tests.conftest import WaitFor
from tests.system.support import Installation, installation


@pytest.fixture(scope="session")
def medusa(
    embedded_stack: EmbeddedStack, tmp_path_factory: pytest.TempPathFactory, wait_for: WaitFor
) -> Iterator[Installation]:
    """Clients of the stack, and a folder for nodes."""
    folder = tmp_path_factory.mktemp("nodes")
    with installation(embedded_stack.settings, folder, wait_for) as found:
        yield found


@pytest.fixture
def undeployed(medusa: Installation) -> Iterator[None]:
    """No node runs what a test has left deployed: a lane takes CPU time also without records."""
    yield
    for record in medusa.catalog.networks():
        stop(record.network, medusa.catalog)
