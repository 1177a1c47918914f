"""A node on a Spark cluster: exact results, and errors of a missing master or worker."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from brokers.embedded.processes import Child
from brokers.ports import free_port
from pipeline.catalog.fragment_status import LaneState
from pipeline.deploy.remove import stop
from tests.conftest import WaitFor
from tests.system.cluster.servers import CORES, LOOPBACK, Cluster, executors_of
from tests.system.support import OWNER, READING, Installation

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(600),
    pytest.mark.second_tier("a Spark cluster: elsewhere the same lanes run on a local master"),
]

RESULTS_WITHIN_S = 180.0
ENDS_WITHIN_S = 150.0
DOCUMENT = """
network: spread
streams:
  readings:
    topic: spread-in
    schema: reading.avsc
    event_time: at
    lateness: 1s
    idle_after: 1h
    partitions: 2
boxes:
  even: {filter: readings, where: value % 2 = 0}
  counts:
    aggregate: readings
    window: 1s
    by: [sensor]
    compute: {n: count(*), total: sum(value)}
  doubled:
    python: readings
    function: doubling.py:double
    columns: {twice: BIGINT NOT NULL, at: TIMESTAMP NOT NULL}
    timeout: 1m
outputs:
  even: {topic: spread-even}
  counts: {topic: spread-counts}
  doubled: {topic: spread-doubled}
"""
SLOW = 700
"""The reading at which the function reports its start and takes long, once."""
FUNCTION = f"""
import pathlib
import time

import pyarrow as pa
import pyarrow.compute as pc

BEGUN = pathlib.Path("BEGUN")


def double(rows: pa.RecordBatch) -> pa.RecordBatch:
    values = rows.column("value")
    if {SLOW} in values.to_pylist() and not BEGUN.exists():
        BEGUN.touch()
        time.sleep(20)
    twice = pc.multiply(pc.cast(values, pa.int64()), 2)
    return pa.record_batch({{"twice": twice, "at": rows.column("at")}})
"""
SENSORS = ("a", "b", "c")
FRAGMENTS = ("even", "counts", "doubled")


def settings_of(cluster: Cluster, folder: Path) -> dict[str, str]:
    """Settings of a node on a cluster; executors use the node's checkpoints and Python."""
    return {
        "spark.master": cluster.url,
        "spark.cores": str(CORES),
        "spark.executor_memory": "512m",
        "checkpoints": str(folder / "shared"),
    }


@pytest.fixture(scope="module")
def worker(cluster: Cluster) -> Iterator[Child]:
    """A worker of the cluster."""
    with cluster.worker() as child:
        yield child


CLOSED_MS = 60_000


class Feed:
    """Readings in order of event time, 10 ms apart."""

    def __init__(self, medusa: Installation) -> None:
        self._medusa = medusa
        self._start_ms = int(time.time()) * 1000 - 600_000
        self.sent: list[Mapping[str, object]] = []

    def send(self, count: int) -> None:
        """Send the next readings."""
        for i in range(len(self.sent), len(self.sent) + count):
            self._send({"sensor": SENSORS[i % 3], "value": i, "at": self._start_ms + 10 * i}, i % 2)
        self._medusa.producer.flush(20)

    def close(self) -> None:
        """Close the windows of all sent readings."""
        for partition in range(2):
            at = self._start_ms + CLOSED_MS
            self._send({"sensor": "last", "value": len(self.sent), "at": at}, partition)
        self._medusa.producer.flush(20)

    def _send(self, reading: Mapping[str, object], partition: int) -> None:
        value = self._medusa.encoded("spread-in-value", READING, reading)
        self._medusa.send("spread-in", value, partition=partition)
        self.sent.append(reading)

    def expected(self) -> dict[str, Counter[tuple[object, ...]]]:
        """The results of all sent readings, except those of open windows."""
        values = [int(str(r["value"])) for r in self.sent]
        windows: dict[tuple[str, int], list[int]] = {}
        for reading, value in zip(self.sent, values, strict=True):
            at = int(str(reading["at"])) // 1000 * 1000
            windows.setdefault((str(reading["sensor"]), at), []).append(value)
        return {
            "even": Counter((v,) for v in values if v % 2 == 0),
            "doubled": Counter((2 * v,) for v in values),
            "counts": Counter(
                (sensor, len(v), sum(v)) for (sensor, _), v in windows.items() if sensor in SENSORS
            ),
        }


def found(medusa: Installation, fragment: str) -> Counter[tuple[object, ...]]:
    """The results in a topic."""
    columns = {"even": ("value",), "doubled": ("twice",), "counts": ("sensor", "n", "total")}
    rows = medusa.decoded(f"spread-{fragment}")
    return Counter(tuple(row[name] for name in columns[fragment]) for row in rows)


def test_results_are_exact_after_the_loss_of_an_executor(
    medusa: Installation, cluster: Cluster, worker: Child
) -> None:
    """Of stateless boxes, windows and Python boxes; all lanes share the node's executors."""
    documents = medusa.folder / "documents"
    documents.mkdir(exist_ok=True)
    begun = medusa.folder / "begun"
    (documents / "doubling.py").write_text(FUNCTION.replace('BEGUN")', f'{begun}")'))
    feed = Feed(medusa)
    with medusa.node("far", settings_of(cluster, medusa.folder)) as node:
        (executor,) = executors_of(worker)
        medusa.deploy(DOCUMENT, {"reading.avsc": READING})
        for fragment in FRAGMENTS:
            medusa.await_state("spread", fragment, LaneState.RUNNING)
        feed.send(500)
        for fragment in FRAGMENTS:
            topic = f"spread-{fragment}"
            medusa.wait_for(
                lambda topic=topic: medusa.has_more_than(topic, 0),  # type: ignore[misc]
                f"results in {topic}",
                within_s=RESULTS_WITHIN_S,
            )
        for _ in range(5):
            feed.send(100)
        medusa.wait_for(begun.exists, "a batch is in the function", within_s=RESULTS_WITHIN_S)
        os.kill(executor, signal.SIGKILL)
        feed.send(100)
        medusa.wait_for(
            lambda: executor not in executors_of(worker) and executors_of(worker),
            "the worker has another executor",
            within_s=60.0,
        )
        feed.send(100)
        feed.close()
        for fragment in FRAGMENTS:
            medusa.wait_for(
                lambda fragment=fragment: (  # type: ignore[misc]
                    found(medusa, fragment).total() >= feed.expected()[fragment].total()
                ),
                f"all results of {fragment}",
                within_s=RESULTS_WITHIN_S,
            )
            assert found(medusa, fragment) == feed.expected()[fragment]
        assert node.running
        status = medusa.status("spread", "doubled")
        assert status is not None
        assert status.epoch > 1, "the batch that was lost was begun again by another start"
    for record in medusa.catalog.networks.of(OWNER):
        stop(record.network, medusa.catalog)


def call(
    medusa: Installation, words: tuple[str, ...], further: Mapping[str, str]
) -> "subprocess.CompletedProcess[str]":
    """Run a verb to its end."""
    stack = medusa.stack
    settings = {
        "data": str(medusa.folder / "elsewhere"),
        "node": "elsewhere",
        "kafka.bootstrap_servers": stack.kafka_bootstrap_servers,
        "zookeeper.connect": stack.zookeeper_connect,
        "registry.url": stack.registry_url,
        "cache": str(stack.cache),
        **further,
    }
    return subprocess.run(
        [sys.executable, "-P", "-m", "pipeline.cli.main", *words]
        + [f"--set={name}={value}" for name, value in settings.items()],
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        timeout=ENDS_WITHIN_S,
        check=False,
    )


def test_an_unreachable_master_is_reported(medusa: Installation) -> None:
    """At once, with its address, a remedy, and the exit code for an unavailable server."""
    master = f"spark://{LOOPBACK}:{free_port()}"
    done = call(medusa, ("node", "start"), {"spark.master": master})
    assert done.returncode == 69, done.stderr
    assert f"spark.master {master}: the Spark master does not answer" in done.stderr
    assert "hint: check the address" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_cluster_without_capacity_is_reported(medusa: Installation, cluster: Cluster) -> None:
    """A node does not wait forever for an executor that no worker has room for."""
    settings = settings_of(cluster, medusa.folder) | {"spark.executor_memory": "900g"}
    done = call(medusa, ("node", "start"), settings)
    assert done.returncode == 69, done.stderr
    assert f"spark.master {cluster.url}: the Spark master gave no executor" in done.stderr
    assert "spark.executor_memory" in done.stderr
    assert "Traceback" not in done.stderr


def spark_finding(medusa: Installation, further: Mapping[str, str]) -> dict[str, str]:
    """The finding of `medusa doctor` about Spark."""
    done = call(medusa, ("doctor", "-o", "json"), further)
    assert "Traceback" not in done.stderr, done.stderr
    (finding,) = (one for one in json.loads(done.stdout)["findings"] if one["what"] == "Spark")
    return dict(finding)


def test_doctor_checks_master_and_workers(
    medusa: Installation, cluster: Cluster, worker: Child, wait_for: WaitFor
) -> None:
    """Room for an executor on a worker; a master that is unreachable, or not a Spark master."""
    assert worker.running
    settings = settings_of(cluster, medusa.folder)

    def free() -> bool:
        found = spark_finding(medusa, settings)
        return found["message"] == f"1 worker, {CORES} free cores for executors"

    wait_for(free, "the master has noticed that no node is up", within_s=60.0)
    wrong = spark_finding(medusa, settings | {"spark.executor_memory": "900g"})
    assert wrong["verdict"] == "wrong"
    assert "1 worker has a free core and 900g of free memory" in wrong["message"]
    unreachable = f"spark://{LOOPBACK}:{free_port()}"
    wrong = spark_finding(medusa, settings | {"spark.master": unreachable})
    assert (wrong["verdict"], wrong["place"]) == ("wrong", f"spark.master {unreachable}")
    kafka = f"spark://{medusa.stack.kafka_bootstrap_servers}"
    wrong = spark_finding(medusa, settings | {"spark.master": kafka})
    assert "what answers there is no Spark master" in wrong["message"]
