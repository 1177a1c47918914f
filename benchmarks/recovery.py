"""Recovery time from kill -9 of a node to the next stable output, by parts.

    python -m benchmarks.recovery                        # three times each
    python -m benchmarks.recovery --session-timeout 10s
    python -m benchmarks.recovery --query stateless

Cold: a new process of the same name is started at once, as by a supervisor, and starts Java and
Spark. Warm: another, idle node claims the fragment when the killed node's ZooKeeper session has
ended, or is suspected. Both continue from the same checkpoints. `benchmarks.reliability` measures
nodes with checkpoints of their own.
Also without a fault a window's result is published one batch after its last reading, a stateless
one in the same batch.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from pathlib import Path

from benchmarks.arrivals import gaps
from benchmarks.harness import median
from benchmarks.soak_feed import DOCUMENT, SCHEMA, Load
from pipeline.cli.project import load_project
from pipeline.errors import MedusaError
from pipeline.markers.codec import decode_marker
from pipeline.markers.positions import Positions
from pipeline.planner.plan import Fragment
from tests.faults.nodes import Node, node_settings
from tests.faults.world import RunFailedError, Running, World, world

OUTPUT_WITHIN_S = 120.0
SETTLE_S = 15.0
"""Time before the fault in which a lane completes its slow first batches."""
REHEARSED = "{fragment} was rehearsed"
"""Log line of a node after a rehearsal."""


BOXES = {"windows": "", "stateless": "  sums: {filter: readings, where: value >= 0}\n"}
"""Replacement of the soak's box; empty: none."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Seconds since the kill.

    Args:
        ready: a node is ready to claim fragments; 0 if another one was.
        taken: the fragment has a new owner, and the lane's first marker is written.
        batch: the first batch of the new owner is written.
        output: the first stable result is published.
        gap: the longest time without a result until then, less the usual one.
    """

    ready: float
    taken: float
    batch: float
    output: float
    gap: float


def main(arguments: Sequence[str]) -> int:
    """Run both kinds, and print medians."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.recovery",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--repeat", type=int, default=3, help="blows of each kind (%(default)s)")
    parser.add_argument("--rate", type=int, default=1_000, help="readings a second (%(default)s)")
    parser.add_argument(
        "--session-timeout", default="1s", help="of the nodes' ZooKeeper sessions (%(default)s)"
    )
    parser.add_argument("--query", choices=tuple(BOXES), default="windows", help="(%(default)s)")
    options = parser.parse_args(arguments)
    return in_world("medusa-recovery-", partial(_run, options=options))


def in_world(prefix: str, run: Callable[[World], None]) -> int:
    """Run a measurement on servers of its own; returns the exit code."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    cache = Path(load_project({}, os.environ, Path.cwd()).settings.cache).expanduser()
    try:
        with world(folder, cache.absolute()) as made:
            run(made)
    except (RunFailedError, MedusaError) as error:
        print(f"failed: {error}")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _run(made: World, options: argparse.Namespace) -> None:
    made.node = node_of(made, "first", options.session_timeout)
    document = document_of(BOXES[options.query]).replace("{name}", "struck")
    plan = made.deploy("struck", document, {"readings.avsc": SCHEMA})
    schema_id = made.registry.register("struck-readings-value", SCHEMA)
    load = Load(made.stack.kafka_bootstrap_servers, "struck-readings", schema_id, options.rate)
    running = made.run("struck", plan, load)
    (fragment,) = plan.fragments
    made.restart()
    made.await_stable(_now_ms())
    sessions = f"sessions of {options.session_timeout}"
    print(f"{options.query}, {options.rate:,} readings a second, {sessions}")
    cold, warm = [], []
    for _ in range(options.repeat):
        time.sleep(SETTLE_S)
        cold.append(_cold(made, running, fragment))
        print(f"cold: {text_of(cold)}", flush=True)
    for number in range(options.repeat):
        spare = _spare(made, number, options.session_timeout, fragment)
        time.sleep(SETTLE_S)
        warm.append(_warm(made, running, fragment, spare))
        print(f"warm: {text_of(warm)}", flush=True)
    load.stop()


def _cold(made: World, running: Running, fragment: Fragment) -> Parts:
    began, epoch = time.monotonic(), epoch_of(running, fragment)
    made.node.kill()
    made.restart()
    return parts_of(made, running, fragment, (began, epoch, time.monotonic()))


def _warm(made: World, running: Running, fragment: Fragment, spare: Node) -> Parts:
    began, epoch = time.monotonic(), epoch_of(running, fragment)
    made.node.kill()
    made.node = spare
    return parts_of(made, running, fragment, (began, epoch, began))


def parts_of(
    made: World, running: Running, fragment: Fragment, since: tuple[float, int, float]
) -> Parts:
    """Wait for the first result after a kill.

    `since`: the time of the kill, the epoch of the owner, and when another node was ready.
    """
    began, epoch, ready = since

    def markers() -> list[tuple[float, Positions]]:
        found = []
        for one in running.observer.seen(fragment.names.markers):
            if one.record.value is None or one.at_s < began:
                continue
            marker = decode_marker(one.record.value, "marker")
            if marker.epoch > epoch:
                found.append((one.at_s, marker.end))
        return found

    def first_batch() -> float | None:
        seen = markers()
        return next((at for at, end in seen if end != seen[0][1]), None)

    def output() -> float | None:
        batch = first_batch()
        topic = fragment.output.topic
        return None if batch is None else running.observer.first_since([topic], batch - 0.5)

    made.wait(lambda: output() is not None, "output", OUTPUT_WITHIN_S)
    taken, batch, first = markers()[0][0], first_batch(), output()
    assert batch is not None  # noqa: S101 - awaited above
    assert first is not None  # noqa: S101 - as above
    times = [round(at - began, 2) for at in (ready, taken, batch, first)]
    times.append(_gap(running, fragment, began, first))
    return Parts(*times)


def _gap(running: Running, fragment: Fragment, began: float, first: float) -> float:
    """The longest time without a result around a kill, less the usual one, in seconds."""
    seen = sorted(one.at_s for one in running.observer.seen(fragment.output.topic))
    before = [at for at in seen if began - SETTLE_S / 2 <= at < began]
    around = [at for at in seen if before[-1] <= at <= first]
    longest = max((b - a for a, b in pairwise(around)), default=0.0)
    return round(longest - median(gaps(before)), 2)


def document_of(box: str) -> str:
    """The soak's network with another box, if one is given."""
    head, rest = DOCUMENT.split("boxes:\n")
    own, outputs = rest.split("outputs:")
    return f"{head}boxes:\n{box or own}outputs:{outputs}"


def _spare(made: World, number: int, session_timeout: str, fragment: Fragment) -> Node:
    """An idle node on the same checkpoints, after a rehearsal."""
    spare = node_of(made, f"spare{number}", session_timeout)
    spare.start()
    made.await_ready(spare)
    log = made.folder / spare.name / "logs" / f"node-{spare.name}.log"
    said = REHEARSED.format(fragment=f"struck.{fragment.name}")
    made.wait(lambda: said in log.read_text(), "it has rehearsed", OUTPUT_WITHIN_S)
    return spare


def node_of(made: World, name: str, session_timeout: str) -> Node:
    """A node that is not started, on the checkpoints that nodes share."""
    settings = {
        **node_settings(made.stack, made.folder),
        "zookeeper.session_timeout": session_timeout,
    }
    node = Node(name, made.folder / name, made.folder / "checkpoints", settings)
    made.others.append(node)
    return node


def node_apart(made: World, name: str, session_timeout: str) -> Node:
    """A node that is ready, on checkpoints of its own."""
    node = node_of(made, name, session_timeout)
    node.checkpoints = made.folder / f"checkpoints-{name}"
    node.start()
    made.await_ready(node)
    return node


def load_run(made: World, network: str, document: str, rate: int) -> Running:
    """Deploy the soak's network or another one with its readings, and wait until it writes.

    Args:
        made: has a node that is ready.
        network: its name.
        document: with `{name}` in place of that.
        rate: readings a second.
    """
    schema_id = made.registry.register(f"{network}-readings-value", SCHEMA)
    load = Load(made.stack.kafka_bootstrap_servers, f"{network}-readings", schema_id, rate)
    plan = made.deploy(network, document.replace("{name}", network), {"readings.avsc": SCHEMA})
    running = made.run(network, plan, load)
    made.await_stable(_now_ms())
    return running


def epoch_of(running: Running, fragment: Fragment) -> int:
    """The epoch of the last marker; -1 before there is one."""
    marker = running.marker(fragment)
    return -1 if marker is None else int(marker.epoch)


def text_of(found: Sequence[Parts]) -> str:
    """The last one, and the medians of all so far."""
    parts = []
    for field in fields(Parts):
        seconds = [float(getattr(one, field.name)) for one in found]
        parts.append(f"{field.name} {seconds[-1]:.2f} s (median {median(seconds):.2f})")
    return ", ".join(parts)


def worst_of(found: Sequence[Parts]) -> str:
    """The longest time of each part."""
    parts = (
        (one.name, max(float(getattr(each, one.name)) for each in found)) for one in fields(Parts)
    )
    return ", ".join(f"{name} {seconds:.2f} s" for name, seconds in parts)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
