from collections.abc import Iterator

import pytest

from brokers.embedded.stack import EmbeddedStack
from tests.conftest import WaitFor
from tests.system.cluster.servers import Cluster, spark_master
from tests.system.lanes.support import Installation, installation


@pytest.fixture(scope="module")
def medusa(
    embedded_stack: EmbeddedStack, tmp_path_factory: pytest.TempPathFactory, wait_for: WaitFor
) -> Iterator[Installation]:
    """Clients of the stack, and a folder for nodes."""
    folder = tmp_path_factory.mktemp("nodes")
    with installation(embedded_stack.settings, folder, wait_for) as found:
        yield found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, wait_for: WaitFor) -> Iterator[Cluster]:
    """A Spark master."""
    with spark_master(tmp_path_factory.mktemp("cluster"), wait_for) as found:
        yield found
