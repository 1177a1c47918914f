"""Schema registry of an embedded stack: runs in the stack's process, stores in ZooKeeper."""

from dataclasses import dataclass

from brokers.embedded.servers import LOOPBACK
from brokers.embedded.stack import StackSettings
from brokers.zookeeper import ZooKeeperStore
from pipeline.names import Znodes
from schemas.server import RegistryServer

ZOOKEEPER_ANSWERS_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class EmbeddedRegistry:
    """A running registry and its session with ZooKeeper."""

    server: RegistryServer
    store: ZooKeeperStore

    def stop(self) -> None:
        """Stop listening, then end the session."""
        self.server.stop()
        self.store.close()


def start_registry(settings: StackSettings) -> EmbeddedRegistry:
    """Serve the schemas of the stack's ZooKeeper; a `brokers.embedded.stack.StartRegistry`.

    Raises:
        EnvironmentProblem: its port is taken.
        UnavailableError: ZooKeeper does not answer.
    """
    store = ZooKeeperStore.connect(settings.zookeeper_connect, ZOOKEEPER_ANSWERS_WITHIN_S)
    # The connect string contains the chroot already.
    server = RegistryServer(store, LOOPBACK, settings.registry_port, names=Znodes(""))
    try:
        server.start()
    except BaseException:
        store.close()
        raise
    return EmbeddedRegistry(server, store)
