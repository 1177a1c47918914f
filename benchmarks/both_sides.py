"""The two sides of a kind of box: Medusa on the stack's node, plain PySpark in its own session.

Each run has separate topics, so that runs are independent.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer

from benchmarks.harness import (
    PLAIN,
    STARTED_WITHIN_S,
    Stack,
    create_topics,
    environment,
    our_side,
    reader,
    wait_for,
)
from benchmarks.kinds import KEPT, KINDS, rest_of
from benchmarks.readings import HERE
from pipeline.markers.codec import decode_marker

Progress = Callable[[], int]
SOURCES = ("bench-readings", "bench-others")


@dataclass(frozen=True, slots=True)
class Run:
    """One side in one round of one kind; `side` as in `harness.sides`."""

    kind: str
    side: str
    turn: int

    @property
    def name(self) -> str:
        """Unique name of the run, part of the names of its topics and network."""
        return f"{self.kind}-{self.side}-{self.turn}"

    @property
    def sources(self) -> list[str]:
        """Input topics."""
        return [f"{topic}-{self.name}" for topic in SOURCES[: {**KINDS, **KEPT}[self.kind].sources]]

    @property
    def target(self) -> str:
        """Output topic."""
        return f"bench-results-{self.name}"

    @property
    def network(self) -> str:
        """Medusa's network."""
        return "bench_" + self.name.replace("-", "_")


class PlainNode:
    """The process of plain PySpark."""

    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        self.process = process
        self._folder = folder
        self._said: list[dict[str, Any]] = []
        self._out = (folder / "out").open(encoding="utf-8")
        self._left = ""

    def said(self) -> list[Mapping[str, Any]]:
        """All messages so far."""
        lines = (self._left + self._out.read()).split("\n")
        self._left = lines.pop()
        self._said += [json.loads(line) for line in lines if line.startswith("{")]
        if self.process.poll() is not None:
            raise SystemExit(f"plain failed:\n{(self._folder / 'err').read_text()[-3_000:]}")
        return list(self._said)

    def tell(self, **command: object) -> None:
        """Start or end a job; returns when that is done."""
        self.said()
        self._said.clear()
        if self.process.stdin is None:
            raise SystemExit("plain cannot be told anything")
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        wait_for(
            lambda: any("ready" in line for line in self.said()),
            STARTED_WITHIN_S,
            "plain",
        )

    def last(self) -> Mapping[str, Any]:
        """The message after its last batch; empty before any.

        Raises:
            SystemExit: the job failed.
        """
        failed = [line["failed"] for line in self.said() if "failed" in line]
        if failed:
            raise SystemExit(f"plain failed: {failed[0][:2_000]}")
        return next((line for line in reversed(self.said()) if "read" in line), {"read": 0})


@contextmanager
def plain_node(stack: Stack, batch_records: int = 400_000) -> Iterator[PlainNode]:
    """The process, with a session and without a job."""
    folder = stack.folder / "plain-node"
    folder.mkdir()
    command = [sys.executable, "-m", "benchmarks.plain_node"]
    command += ["--bootstrap-servers", stack.bootstrap_servers, "--jars", str(stack.jars)]
    command += ["--scratch", str(folder), "--batch-records", str(batch_records)]
    with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
        process = subprocess.Popen(
            command,
            cwd=HERE.parent,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            text=True,
        )
    try:
        node = PlainNode(process, folder)
        wait_for(lambda: bool(node.said()), STARTED_WITHIN_S, "plain")
        yield node
    finally:
        process.terminate()
        process.wait(60)


class Lane:
    """Progress of Medusa's network, from its commit markers."""

    def __init__(self, stack: Stack, run: Run) -> None:
        self._sources = set(run.sources)
        self._read: dict[str, int] = {}
        self._consumers: dict[str, Consumer] = {}
        probe = reader(stack, run.target, at_end=True)
        known = probe.list_topics(timeout=30).topics
        probe.close()
        for topic in known:
            if topic.startswith(f"local.{run.network}.") and topic.endswith(".markers"):
                self._consumers[topic] = reader(stack, topic, at_end=False)
                self._read[topic] = 0
        if not self._consumers:
            raise SystemExit(f"{run.network} has no markers")

    def read(self) -> int:
        """Records up to the last commit marker; the minimum over several fragments."""
        for topic, consumer in self._consumers.items():
            for message in consumer.consume(100, 0.02):
                marker = decode_marker(message.value() or b"", topic)
                self._read[topic] = sum(
                    offset for at, offset in marker.end.items() if at.topic in self._sources
                )
        return min(self._read.values())

    def close(self) -> None:
        """Close the readers."""
        for consumer in self._consumers.values():
            consumer.close()


def written_document(stack: Stack, run: Run) -> str:
    """Write the network of Medusa's side, with the topics of the run; returns the file's name."""
    text = (HERE / "kinds" / f"{run.kind}.yaml").read_text(encoding="utf-8")
    for before, after in (
        (f"network: bench_{run.kind}", f"network: {run.network}"),
        *((f"topic: {topic}", f"topic: {topic}-{run.name}") for topic in SOURCES),
        ("topic: bench-results", f"topic: {run.target}"),
        ("topic: bench-rest", f"topic: {rest_of(run.target)}"),
    ):
        text = text.replace(before, after)
    file = f"{run.name}.yaml"
    (stack.folder / file).write_text(text, encoding="utf-8")
    return file


@contextmanager
def running(stack: Stack, node: PlainNode, run: Run) -> Iterator[None]:
    """Run one side during the block."""
    if run.side in PLAIN:
        create_topics(stack, run.target, *([rest_of(run.target)] if run.kind == "route" else []))
        node.tell(job=run.kind, sources=run.sources, target=run.target, write=PLAIN[run.side])
        try:
            yield
        finally:
            node.tell()
        return
    with our_side(stack, written_document(stack, run), run.network):
        yield


@contextmanager
def progress(stack: Stack, node: PlainNode, run: Run) -> Iterator[Progress]:
    """A function that returns the records of one side's completed batches."""
    if run.side in PLAIN:
        yield lambda: int(node.last()["read"])
        return
    lane = Lane(stack, run)
    try:
        yield lane.read
    finally:
        lane.close()
