"""One fresh tree for each test: the in-memory twin's, and a real one in ZooKeeper."""

import uuid
from collections.abc import Callable, Iterator

import pytest

from brokers.embedded.stack import EmbeddedStack
from brokers.versioned_store import VersionedStore
from brokers.zookeeper import ZooKeeperStore
from tests.memory_store import MemoryStore, MemoryTree

TIMEOUT_S = 10.0
OpenSession = Callable[[], VersionedStore]


def zookeeper_sessions(stack: EmbeddedStack) -> OpenSession:
    """Opens sessions on a chroot that nothing else uses."""
    connect = f"{stack.settings.zookeeper_connect}/conformance/{uuid.uuid4().hex}"
    return lambda: ZooKeeperStore.connect(connect, TIMEOUT_S)


@pytest.fixture(params=["memory", pytest.param("zookeeper", marks=pytest.mark.system)])
def open_session(request: pytest.FixtureRequest) -> Iterator[OpenSession]:
    """Opens sessions on one fresh tree; they are closed after the test."""
    tree = MemoryTree()
    opened: list[VersionedStore] = []
    opens: OpenSession = lambda: MemoryStore(tree)  # noqa: E731 - one of two values
    if request.param == "zookeeper":
        opens = zookeeper_sessions(request.getfixturevalue("embedded_stack"))

    def open_one() -> VersionedStore:
        store = opens()
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()
