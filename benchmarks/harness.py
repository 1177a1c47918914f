"""Shared code of the benchmarks: a separate stack, the two sides, readers and statistics.

Medusa is used through the command line only (`medusa up`, `deploy`, `down`).
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from benchmarks.readings import HERE, READING_JSON
from brokers.embedded.control import running_stack as running_control
from brokers.embedded.jars import jar_folder
from brokers.kafka.admin import KafkaAdmin
from brokers.ports import free_port
from brokers.records import NewTopicSpec
from pipeline.ids import TopicName
from schemas.client import RegistryClient

SOURCE = "bench-readings"
PARTITIONS = 4
STARTED_WITHIN_S = 180.0
FINISHED_WITHIN_S = 120.0


@dataclass(frozen=True, slots=True)
class Stack:
    """An embedded stack with one node, in a separate folder."""

    folder: Path
    bootstrap_servers: str
    registry_url: str
    cache: Path

    @property
    def jars(self) -> Path:
        """The connector jars, also for the plain script."""
        return jar_folder(self.cache) / "spark"

    @property
    def pid(self) -> int:
        """The process of `medusa up`, the ancestor of all others."""
        control = running_control(self.folder / ".medusa")
        if control is None:
            raise SystemExit("the stack does not run")
        return control.pid

    def medusa(self, *arguments: str) -> str:
        """Run one command; returns its stdout, ends the benchmark if it fails."""
        done = subprocess.run(
            medusa_command(*arguments),
            cwd=self.folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=STARTED_WITHIN_S,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"medusa {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout


def medusa_command(*arguments: str) -> list[str]:
    """The command line of this checkout."""
    return [sys.executable, "-m", "pipeline.cli.main", *arguments]


def environment() -> dict[str, str]:
    """Environment of all started processes, with this checkout first."""
    ours = {"PYTHONPATH": str(HERE.parent), "PYTHONWARNINGS": "ignore"}
    return {**os.environ, **ours, "PYSPARK_PYTHON": sys.executable}


@contextmanager
def project() -> Iterator[Stack]:
    """A folder with the benchmark networks and free ports, without processes."""
    folder = Path(tempfile.mkdtemp(prefix="medusa-bench-"))
    kafka, zookeeper, registry = free_port(), free_port(), free_port()
    cache = Path(os.environ.get("MEDUSA_CACHE") or "~/.cache/medusa").expanduser()
    settings = {
        "kafka": {"bootstrap_servers": f"127.0.0.1:{kafka}"},
        "zookeeper": {"connect": f"127.0.0.1:{zookeeper}/medusa"},
        "registry": {"url": f"http://127.0.0.1:{registry}"},
    }
    # JSON is YAML, too.
    (folder / "medusa.yaml").write_text(json.dumps(settings), encoding="utf-8")
    shutil.copytree(HERE / "schemas", folder / "schemas")
    for file in (*HERE.glob("*.yaml"), HERE / "conversion.py"):
        shutil.copy(file, folder)
    try:
        yield Stack(folder, f"127.0.0.1:{kafka}", f"http://127.0.0.1:{registry}", cache)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running_stack(*, node: bool = True) -> Iterator[Stack]:
    """The same with `medusa up`, and `medusa down` at the end, by SIGTERM too.

    Args:
        node: whether Medusa's node is started, too.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with project() as stack:
        try:
            stack.medusa("up", "--detach", *(() if node else ("--no-node",)))
            yield stack
        finally:
            subprocess.run(
                medusa_command("down"),
                cwd=stack.folder,
                env=environment(),
                timeout=STARTED_WITHIN_S,
                check=False,
                stdout=subprocess.DEVNULL,
            )


def create_topics(stack: Stack, *topics: str, partitions: int = PARTITIONS) -> None:
    """Create topics."""
    admin = KafkaAdmin(stack.bootstrap_servers, 30.0)
    admin.create_topics(tuple(NewTopicSpec(TopicName(t), partitions, 1) for t in topics))


def register_reading(stack: Stack) -> int:
    """Register the readings' schema; returns its id."""
    registry = RegistryClient(stack.registry_url)
    try:
        return int(registry.register(f"{SOURCE}-value", READING_JSON))
    finally:
        registry.close()


PLAIN = {"plain": "transaction", "sink": "sink"}
"""The plain sides and their sinks: transactional, or at least once by Spark's own Kafka sink."""
SINK_HELP = "`sink` is plain with Spark's own Kafka sink, which writes at least once"


@contextmanager
def child_side(command: list[str], scratch: Path, what: str) -> Iterator["subprocess.Popen[str]"]:
    """A side's program, running since it printed its first line; stopped at the end.

    Raises:
        SystemExit: the program ended by itself.
    """
    with (scratch / "out").open("w") as out, (scratch / "err").open("w") as err:
        process = subprocess.Popen(
            command, cwd=HERE.parent, env=environment(), stdout=out, stderr=err, text=True
        )
    ended = False
    try:
        wait_for(
            lambda: process.poll() is not None or (scratch / "out").read_text() != "",
            STARTED_WITHIN_S,
            what,
        )
        if process.poll() is None:
            yield process
    finally:
        ended = process.poll() is not None
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(60)
        if ended:
            text = (scratch / "err").read_text(encoding="utf-8", errors="replace")
            raise SystemExit(f"{what} failed:\n{text[-3_000:]}")


@contextmanager
def plain_side(
    stack: Stack, side: str, job: str, targets: Sequence[str], **options: object
) -> Iterator["subprocess.Popen[str]"]:
    """The plain script, running; stopped at the end."""
    scratch = stack.folder / f"plain-{targets[0]}"
    scratch.mkdir()
    values = {"source": SOURCE, "batch_records": 400_000, **options}
    command = [sys.executable, "-m", "benchmarks.plain_pyspark"]
    command += ["--bootstrap-servers", stack.bootstrap_servers, "--jars", str(stack.jars)]
    command += ["--scratch", str(scratch), "--target", ",".join(targets), "--job", job]
    command += ["--write", PLAIN[side]]
    for name, value in values.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    with child_side(command, scratch, "the plain script") as process:
        yield process


@contextmanager
def our_side(stack: Stack, document: str, network: str) -> Iterator[None]:
    """The network, deployed and running; undeployed at the end."""
    stack.medusa("deploy", "-f", document)
    wait_for(lambda: all_run(stack, network), STARTED_WITHIN_S, f"network {network}")
    try:
        yield
    finally:
        stack.medusa("undeploy", network)


def all_run(stack: Stack, network: str) -> bool:
    """Whether every fragment of a network runs."""
    rows = json.loads(stack.medusa("status", network, "-o", "json"))["fragments"]
    return bool(rows) and all(row["state"] == "running" for row in rows)


def feed(
    stack: Stack,
    kind: str,
    schema_id: int,
    topics: Sequence[str] = (SOURCE,),
    *,
    held: Path | None = None,
    **options: float,
) -> "subprocess.Popen[str]":
    """Start a feed; its stdout is one JSON object.

    Args:
        stack: where it sends to.
        kind: of `benchmarks.feed`.
        schema_id: of its readings.
        topics: in turn.
        held: a file; while it exists, the readings of one partition are kept back.
        options: others of `benchmarks.feed`.
    """
    command = [sys.executable, "-m", "benchmarks.feed", kind]
    command += ["--bootstrap-servers", stack.bootstrap_servers, "--topics", *topics]
    command += ["--schema-id", str(schema_id)]
    if held is not None:
        command += ["--held", str(held)]
    for name, value in {"partitions": PARTITIONS, **options}.items():
        command += [f"--{name.replace('_', '-')}", f"{value:g}" if value % 1 else str(int(value))]
    return subprocess.Popen(
        command, cwd=HERE.parent, env=environment(), stdout=subprocess.PIPE, text=True
    )


def fed(process: "subprocess.Popen[str]") -> Mapping[str, int]:
    """Wait for a feed's end; returns its report."""
    out, _ = process.communicate(timeout=600)
    if process.returncode:
        raise SystemExit("the feed failed")
    found: Mapping[str, int] = json.loads(out)
    return found


def wait_for(done: Callable[[], bool], seconds: float, what: str) -> None:
    """Poll a condition; ends the benchmark at the timeout."""
    ends_at = time.monotonic() + seconds
    while not done():
        if time.monotonic() > ends_at:
            raise SystemExit(f"{what} was not ready after {seconds:.0f} s")
        time.sleep(0.1)


def reader(stack: Stack, *topics: str, at_end: bool) -> Consumer:
    """A read_committed consumer of all partitions of some topics."""
    consumer = Consumer(
        {
            "bootstrap.servers": stack.bootstrap_servers,
            "group.id": "benchmark",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 10,
            "log_level": 2,
        }
    )
    places = []
    for topic in topics:
        for partition in sorted(consumer.list_topics(topic, 30).topics[topic].partitions):
            place = TopicPartition(topic, partition)
            low, high = consumer.get_watermark_offsets(place, 30)
            place.offset = high if at_end else low
            places.append(place)
    consumer.assign(places)
    return consumer


def stable_end(consumer: Consumer, topic: str) -> int:
    """The sum of the last stable offsets of a read_committed consumer."""
    places = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    return sum(consumer.get_watermark_offsets(place, 30)[1] for place in places)


def delete_topics(stack: Stack, *topics: str) -> None:
    """Delete topics that are no longer needed, for their space."""
    KafkaAdmin(stack.bootstrap_servers, 60.0).delete_topics([TopicName(t) for t in topics])


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(len(ordered) * share * 10_000) // 10_000) - 1)]


def median(values: Sequence[float]) -> float:
    """The median."""
    return statistics.median(values)
