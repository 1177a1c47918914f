"""A standalone Spark cluster on loopback: a master and a worker."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from brokers.children import child_processes
from brokers.embedded.jars import pyspark_jars
from brokers.embedded.java import find_java
from brokers.embedded.processes import Child, ChildSpec, start_child
from brokers.ports import free_port
from tests.conftest import WaitFor

LOOPBACK = "127.0.0.1"
READY_WITHIN_S = 60.0
CORES = 2
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_REGISTERED = "Successfully registered with master"


@dataclass(frozen=True)
class Cluster:
    """A master; `worker` starts a worker."""

    folder: Path
    port: int
    wait_for: WaitFor

    @property
    def url(self) -> str:
        """The value of `spark.master`."""
        return f"spark://{LOOPBACK}:{self.port}"

    @contextmanager
    def worker(self) -> Iterator[Child]:
        """A worker that is registered with the master."""
        words = ("--cores", str(CORES), "--memory", "2g", "--work-dir", str(self.folder / "work"))
        child = _start(self.folder, "worker", free_port(), (_WORKER, *words, self.url))
        try:
            self.wait_for(
                lambda: _REGISTERED in (self.folder / "worker.out").read_text(),
                "the worker is known to the master",
                within_s=READY_WITHIN_S,
            )
            yield child
        finally:
            child.stop()


@contextmanager
def spark_master(folder: Path, wait_for: WaitFor) -> Iterator[Cluster]:
    """A master without workers."""
    port = free_port()
    child = _start(folder, "master", port, (_MASTER,))

    def listens() -> bool:
        assert child.running, child.last_lines()
        with socket.socket() as probe:
            return probe.connect_ex((LOOPBACK, port)) == 0

    try:
        wait_for(listens, "the master listens", within_s=READY_WITHIN_S)
        yield Cluster(folder, port, wait_for)
    finally:
        child.stop()


def executors_of(worker: Child) -> tuple[int, ...]:
    """The processes of a worker's executors."""
    return child_processes(worker.pid)


def _start(folder: Path, name: str, port: int, main: tuple[str, ...]) -> Child:
    """Start a Spark daemon from the jars of PySpark."""
    jars = pyspark_jars()
    java = find_java(os.environ).executable
    main_class, *words = main
    command = (
        *(str(java), "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{jars}/*", main_class),
        *("--host", LOOPBACK, "--port", str(port), "--webui-port", str(free_port()), *words),
    )
    # Executors inherit its variables, which locate Spark's jars, and Medusa for Python.
    environment = (
        ("SPARK_HOME", str(jars.parent)),
        ("SPARK_SCALA_VERSION", "2.13"),
        ("PYTHONPATH", str(Path.cwd())),
    )
    return start_child(
        ChildSpec(name, command, folder / f"{name}.out", folder, environment=environment)
    )
