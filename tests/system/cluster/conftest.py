from collections.abc import Iterator

import pytest

from tests.conftest import WaitFor
from tests.system.cluster.servers import Cluster, spark_master


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, wait_for: WaitFor) -> Iterator[Cluster]:
    """A Spark master."""
    with spark_master(tmp_path_factory.mktemp("cluster"), wait_for) as found:
        yield found
