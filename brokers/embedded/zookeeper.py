"""Embedded ZooKeeper: one server on loopback, from the jars inside PySpark."""

from brokers.embedded.jars import zookeeper_classpath
from brokers.embedded.processes import Child
from brokers.embedded.servers import (
    LOOPBACK,
    JavaServer,
    Place,
    start_server,
    wait_until_ready,
    write_file,
)
from brokers.zookeeper import ZooKeeperStore
from pipeline.clock import Clock

HEAP_MB = 128
"""The catalog is small: a few thousand znodes of a few KB."""

_CONFIGURATION = """\
dataDir=data
clientPort={port}
clientPortAddress={host}
admin.enableServer=false
tickTime=200
maxSessionTimeout=60000
maxClientCnxns=200
autopurge.snapRetainCount=3
autopurge.purgeInterval=1
"""


def start_zookeeper(place: Place, port: int) -> Child:
    """Start the server; `zookeeper_ready` waits for it."""
    text = _CONFIGURATION.format(port=port, host=LOOPBACK)
    write_file(place.data / "zookeeper" / "zoo.cfg", text)
    return start_server(
        place,
        JavaServer(
            name="zookeeper",
            main=("org.apache.zookeeper.server.ZooKeeperServerMain", "zoo.cfg"),
            heap_mb=HEAP_MB,
            class_path=zookeeper_classpath(),
            # KB by which the transaction log grows; the default of 64 MB is too large here.
            options=("-Dzookeeper.preAllocSize=1024", "-XX:+UseSerialGC"),
        ),
    )


def zookeeper_ready(child: Child, port: int, clock: Clock) -> None:
    """Wait until the server opens a session.

    Raises:
        EnvironmentProblem: it failed to start.
    """

    def answers(within_s: float) -> None:
        ZooKeeperStore.connect(f"{LOOPBACK}:{port}", within_s).close()

    wait_until_ready(child, port, answers, clock)
