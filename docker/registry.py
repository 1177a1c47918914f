"""Serves the schema registry from a container: ZOOKEEPER_CONNECT says where its schemas lie."""

import os
import signal
import sys
import threading

from brokers.zookeeper import ZooKeeperStore, zookeeper_servers
from pipeline.cli.project import from_environment
from pipeline.errors import MedusaError
from pipeline.names import Znodes
from pipeline.settings import combine
from schemas.server import RegistryServer

ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - the container's own; the compose file says who reaches it
PORT = 8081
ZOOKEEPER_ANSWERS_WITHIN_S = 30.0


def main() -> int:
    """Serve until SIGTERM; the exit code."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        serve(stop)
    except MedusaError as error:
        sys.stderr.write(f"{error}\n")
        return int(error.exit_code)
    return 0


def serve(stop: threading.Event) -> None:
    """Serve until the event is set."""
    settings = combine((("environment", from_environment(os.environ)),))
    store = ZooKeeperStore.connect(zookeeper_servers(settings), ZOOKEEPER_ANSWERS_WITHIN_S)
    try:
        server = RegistryServer(store, ALL_ADDRESSES, PORT, names=Znodes(""))
        server.start()
        sys.stderr.write(
            f"schema registry on port {PORT}, schemas at {settings.zookeeper_connect}\n"
        )
        stop.wait()
        server.stop()
    finally:
        store.close()


if __name__ == "__main__":
    sys.exit(main())
