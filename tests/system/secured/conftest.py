from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.secured.servers import Secured, secured_servers


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory, jar_cache: Path) -> Iterator[Secured]:
    """Running Kafka and ZooKeeper with logins and certificates."""
    with secured_servers(tmp_path_factory.mktemp("secured"), jar_cache) as servers:
        yield servers
