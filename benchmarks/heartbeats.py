"""Gaps between heartbeats as another process reads them, on a busy machine.

Each node is a process with the sender of a real node; one consumer reads the topic. Meanwhile one
busy loop for each core competes, and a process that collects the garbage of a large heap. What a
limit would have cost is the number of gaps that exceed it: each is a false suspicion.

    python -m benchmarks.heartbeats                        # two minutes, three nodes
    python -m benchmarks.heartbeats --load none --seconds 60
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.harness import percentile
from benchmarks.processes import own_s
from brokers.children import child_processes
from brokers.embedded.stack import EmbeddedStack, StackSettings
from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.cluster import RemoteKafka
from brokers.kafka.servers import KafkaServers
from brokers.kafka_interface import Isolation
from brokers.ports import free_port
from pipeline.agent.polls.heartbeats import HeartbeatPoll
from pipeline.cli.project import load_project
from pipeline.examples.memory import resident_bytes
from pipeline.heartbeats.codec import decode
from pipeline.heartbeats.detector import Detector, Suspect, Suspicion
from pipeline.heartbeats.topic import topic_spec
from pipeline.ids import Millis, NodeId, ParticipantId
from pipeline.names import heartbeats_topic
from pipeline.node.heartbeats.messages import Orders
from pipeline.node.heartbeats.sender import HeartbeatSender
from pipeline.system_clock import SystemClock
from schemas.embedded import start_registry

ME = ParticipantId("bench")
TOPIC = heartbeats_topic(ME)
LIFE = Millis(1)
LIMITS_MS = (500, 1_000, 2_000)
LIMIT_MS = 1_000
"""Of the poll: the default of `suspect_after`."""
WARM_UP_S = 5.0
MIB = 1 << 20

NODE = f"""
import sys, threading
from {KafkaServers.__module__} import KafkaServers
from {Orders.__module__} import Orders
from {HeartbeatSender.__module__} import HeartbeatSender
HeartbeatSender(Orders(KafkaServers(sys.argv[1]), "{ME}", sys.argv[2], {LIFE}), lambda: 0, tuple)
threading.Event().wait()
"""
BUSY = "while True: pass"
GARBAGE = """
import gc
heap = [[number] for number in range(5_000_000)]
while True: gc.collect()
"""


@dataclass(slots=True)
class Heard:
    """The heartbeats of one node: times between arrivals, ages, and numbers that are missing."""

    gaps_ms: list[float] = field(default_factory=list)
    ages_ms: list[float] = field(default_factory=list)
    lost: int = 0
    number: int = 0
    at_ms: float = 0.0


@contextmanager
def processes(programs: Sequence[Sequence[str]]) -> Iterator[list[int]]:
    """Run Python programs; killed at the end. Their ids."""
    with ExitStack() as undo:
        started = []
        for program in programs:
            one = undo.enter_context(subprocess.Popen([sys.executable, "-c", *program]))
            undo.callback(one.kill)
            started.append(one.pid)
        yield started


def listen(kafka: RemoteKafka, seconds: float) -> Mapping[NodeId, Heard]:
    """Read heartbeats for some time; ages are by the one clock of this machine."""
    found: dict[NodeId, Heard] = defaultdict(Heard)
    with kafka.reader(10.0, isolation=Isolation.UNCOMMITTED) as reader:
        _, end = reader.bounds(TOPIC, 0)
        reader.assign({TOPIC: {0: end}})
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            records = reader.poll(0.1)
            now_ms = time.monotonic() * 1_000
            for record in records:
                heartbeat = decode(record.value, "")
                heard = found[heartbeat.node]
                if heard.number:
                    heard.gaps_ms.append(now_ms - heard.at_ms)
                    heard.lost += heartbeat.number - heard.number - 1
                heard.number, heard.at_ms = heartbeat.number, now_ms
                heard.ages_ms.append(now_ms - heartbeat.sent_ms)
    return found


def poll_for(kafka: RemoteKafka, node: NodeId, seconds: float) -> tuple[float, int]:
    """Run the poll of a node for some time: its CPU time, and how often it suspected somebody."""
    suspected: list[Mapping[Suspect, Suspicion]] = []
    poll = HeartbeatPoll(
        kafka, TOPIC, Detector(node, LIFE, LIMIT_MS), SystemClock(), suspected.append
    )
    end_s, before_s = time.monotonic() + seconds, time.process_time()
    while time.monotonic() < end_s:
        time.sleep(poll.read())
    return time.process_time() - before_s, sum(map(bool, suspected))


def row(what: str, values: Sequence[float]) -> str:
    """A row of the table."""
    over = " | ".join(str(sum(value > limit for value in values)) for limit in LIMITS_MS)
    p50, p99 = percentile(values, 0.5), percentile(values, 0.99)
    return f"| {what} | {len(values)} | {p50:.0f} | {p99:.0f} | {max(values):.0f} | {over} |"


def measure(brokers: str, options: argparse.Namespace) -> None:
    """Run nodes and load; print what was read."""
    kafka = RemoteKafka(brokers)
    KafkaAdmin(brokers, 20.0).create_topics((topic_spec(ME),))
    nodes = [NodeId(f"n{number}") for number in range(1, options.nodes + 1)]
    load = [[BUSY]] * (os.cpu_count() or 1) + [[GARBAGE]] if options.load == "busy" else []
    with processes([[NODE, brokers, node] for node in nodes]) as pids, processes(load):
        time.sleep(WARM_UP_S)
        children = [child for pid in pids for child in child_processes(pid)]
        before = {pid: own_s(pid) for pid in (*pids, *children)}
        heard = listen(kafka, options.seconds)
        used = {pid: 100 * (own_s(pid) - before[pid]) / options.seconds for pid in before}
        print("\n| ms | number | p50 | p99 | max | > 500 | > 1,000 | > 2,000 |")
        print("|---|---|---|---|---|---|---|---|")
        for node, one in sorted(heard.items()):
            print(row(f"gaps of {node}, {one.lost} lost", one.gaps_ms))
            print(row(f"ages of {node}", one.ages_ms))
        print(f"\nload {options.load}, {options.seconds:g} s, {options.nodes} nodes")
        for child in children:
            size = (resident_bytes(child) or 0) / MIB
            print(f"child: {used[child]:.2f} % of a core, {size:.1f} MiB")
        print(f"node's side: {max(used[pid] for pid in pids):.2f} % of a core")
        cpu_s, suspected = poll_for(kafka, nodes[0], options.poll_seconds)
        percent = 100 * cpu_s / options.poll_seconds
        print(f"poll: {percent:.2f} % of a core, {suspected} suspicions", flush=True)


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.heartbeats", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--nodes", type=int, default=3, help="how many send (%(default)s)")
    add("--seconds", type=float, default=120.0, help="of reading (%(default)s)")
    add("--poll-seconds", type=float, default=30.0, help="of a node's poll (%(default)s)")
    add("--load", default="busy", choices=("busy", "none"), help="(%(default)s)")
    options = parser.parse_args(arguments)
    cache = Path(load_project({}, os.environ, Path.cwd()).settings.cache)
    with tempfile.TemporaryDirectory() as folder:
        settings = StackSettings(Path(folder), cache, free_port(), free_port(), free_port())
        with EmbeddedStack(settings, start_registry):
            measure(settings.kafka_bootstrap_servers, options)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
