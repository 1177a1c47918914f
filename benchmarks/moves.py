"""Pause and cost of a move of a fragment between two nodes, while 1,000 readings a second flow.

    python -m benchmarks.moves                        # stateless, 20 moves
    python -m benchmarks.moves --job window
    python -m benchmarks.moves --job join --keys 200000
    python -m benchmarks.moves --job join --state 100
    python -m benchmarks.moves --job window --upgrade --moves 5
    python -m benchmarks.moves --job window --sides flink ours

The pause is the longest time without a result from the request of the move until five seconds after
it is done, less the usual time between two deliveries of results. `whole` is the time from the
request until the target runs the fragment: mostly that in which the follower builds the state,
`built`. While it builds, these are measured:

- processor seconds of the target's node, with its Java and all other children;
- what these have read: bytes of files, cached or not, and of Java's connections to Kafka;
- the size of the follower's state in files, once it is level;
- the 99th percentile of how long after their event time the owner's results are read, beside that
  of ten seconds before; at most twice as much is wanted.

The parts of the pauses are printed, as far as the topic still has the markers: from the last marker
of the owner until it has released the fragment, until the target has claimed it, until that has
written its first marker, and until it has written its first batch.

At the end the network is deployed with `reliability: active_standby`, and once the other node is
level, the follower's lag is measured (time from a commit marker until the follower has committed
that batch), and its processor time beside the owner's.

The join keeps a row of each key on both sides for an hour; `--keys` readings are sent before the
first move, and the size of its state is printed. With `--state` its rows have a text that cannot
be compressed by more than half, and readings are sent until the files of its state have so many
MiB. With `--upgrade` each move is followed by an upgrade of the second node, as `docs/upgrades.md`
describes it: drained, stopped, started, no longer drained. Its pause is measured alike.

With `--sides flink` the job of Flink is stopped with a savepoint, and started from it by a second
process, which runs already and waits for it; see `benchmarks.peer_moves`.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from benchmarks import peer_moves
from benchmarks.arrivals import Arrivals, arrivals_of
from benchmarks.following import Commits, Reached, lags_ms, newest_checkpoint
from benchmarks.harness import (
    SOURCE,
    STARTED_WITHIN_S,
    Stack,
    create_topics,
    environment,
    fed,
    feed,
    medusa_command,
    our_side,
    register_reading,
    running_stack,
    wait_for,
)
from benchmarks.lane_log import markers_of, topic_records
from benchmarks.move_figures import (
    AFTER_S,
    BEFORE_S,
    MIB,
    PAUSES_MS,
    Built,
    Move,
    Used,
    level_text,
    size_text,
    summary,
)
from benchmarks.move_parts import Written, entries_of, parts_ms, parts_text
from benchmarks.processes import node_of
from benchmarks.sides import OURS
from benchmarks.state import sizes_in, state_bytes
from pipeline.markers.codec import decode_marker

SECOND = "node2"
FLINK = "flink"
LEVEL_WITHIN_S = 180.0
EVENTS = "10000"
"""How many entries of the event log are read at most."""
JOIN = """
network: bench_join

streams:
  readings:
    topic: bench-readings
    schema: schemas/reading.avsc
    event_time: at
    lateness: 0s
    idle_after: 10s
    start: earliest

boxes:
  warm: {filter: readings, where: celsius > -90}
  pairs:
    join: {left: readings, right: warm, on: [sensor, at], within: 1h}
    select: {sensor: sensor, celsius: left.celsius, at: left.at}

outputs:
  pairs: {topic: bench-pairs, partitions: 4}
"""
WIDE_JOIN = JOIN.replace(
    "  warm: {filter: readings, where: celsius > -90}\n",
    """  wide:
    map: readings
    select:
      sensor: sensor
      celsius: celsius
      at: at
      text: sha2(concat(sensor, CAST(at AS STRING)), 512)
  warm: {filter: wide, where: celsius > -90}
""",
).replace(
    "left: readings, right: warm, on: [sensor, at], within: 1h}\n    select: {",
    "left: wide, right: warm, on: [sensor, at], within: 1h}\n"
    "    select: {text: left.text, other: right.text, ",
)
"""The same with 128 more characters in each row of its state."""
FILLED_AT = 20_000.0
FILLED_S = 5.0
FILLED_MOST = 5_000_000
"""Readings a second to fill a state, and how many at once, in seconds; and how many at most."""
JOBS = {
    "stateless": ("bench_stateless", "converted", "bench-converted"),
    "window": ("bench_window", "averages", "bench-averages"),
    "join": ("bench_join", "pairs", "bench-pairs"),
}
"""Job → its network, fragment and output topic."""


class SecondNode:
    """Another node, with checkpoints of its own; use it in `with`."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start it."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()

    def start(self) -> None:
        """Start it, and wait until it is up."""
        data = self._stack.folder / SECOND
        data.mkdir(exist_ok=True)
        ready = data / "ready"
        ready.unlink(missing_ok=True)
        command = medusa_command("node", "start", f"--ready-file={ready}", f"--set=node={SECOND}")
        command += [f"--set=data={data}", f"--set=checkpoints={data / 'checkpoints'}"]
        with (data / "out").open("a") as out:
            self._process = subprocess.Popen(
                command, cwd=self._stack.folder, env=environment(), stdout=out, stderr=out
            )
        wait_for(ready.exists, STARTED_WITHIN_S, "the second node")

    def stop(self) -> None:
        """Stop it as a service manager does."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(90)

    @property
    def pid(self) -> int:
        """Its process."""
        if self._process is None:
            raise SystemExit("the second node does not run")
        return self._process.pid


@dataclass(frozen=True, slots=True)
class Setup:
    """A fragment that runs and moves, and its nodes.

    Args:
        stack: with the first node.
        second: the second node.
        network: the network's name.
        fragment: the fragment's name.
        arrivals: of its results.
    """

    stack: Stack
    second: SecondNode
    network: str
    fragment: str
    arrivals: Arrivals

    @property
    def owner(self) -> str:
        """The node that runs the fragment."""
        full = f"{self.network}.{self.fragment}"
        nodes = json.loads(self.stack.medusa("node", "list", "-o", "json"))["nodes"]
        return str(next(one["node"] for one in nodes if full in one["fragments"]))

    def other(self, node: str) -> str:
        """The node beside another one."""
        nodes = json.loads(self.stack.medusa("node", "list", "-o", "json"))["nodes"]
        return str(next(one["node"] for one in nodes if one["node"] != node))

    def pid(self, node: str) -> int:
        """The process of a node."""
        return self.second.pid if node == SECOND else node_of(self.stack.pid)

    def checkpoint(self, node: str) -> Path | None:
        """The checkpoint in which a node has planned a batch last."""
        return newest_checkpoint(self.stack.folder / (SECOND if node == SECOND else ".medusa"))


def moved(setup: Setup) -> Move:
    """Move a fragment to the other node, and measure."""
    owner = setup.owner
    to = setup.other(owner)
    time.sleep(BEFORE_S)
    began_s = time.monotonic()
    command = ("move", f"{setup.network}.{setup.fragment}", "--to", to, "-o", "json")
    process = subprocess.Popen(
        medusa_command(*command),
        cwd=setup.stack.folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    said: list[str] = []
    built = _built(setup, process, said, to)
    out, errors = process.communicate(timeout=STARTED_WITHIN_S)
    if process.returncode:
        raise SystemExit(f"medusa {' '.join(command)} failed:\n{out}{''.join(said)}{errors}")
    whole_ms = float(json.loads(out)["after_ms"])
    return _measured(setup.arrivals, began_s, time.monotonic(), whole_ms, built)


def _built(setup: Setup, process: "subprocess.Popen[str]", said: list[str], to: str) -> Built:
    """Measure the target from when the command says that it builds, until it is level.

    The lines of the command are added to `said`.
    """
    pid = setup.pid(to)
    before = Used.of(pid)
    begun = False
    for line in process.stderr or ():
        said.append(line)
        if f"{to} builds its state" in line:
            before, begun = Used.of(pid), True
        elif f"{to} is level" in line or f"{to} starts it" in line:
            break
    after = Used.of(pid)
    return Built(before, after, _state_size(setup, to) if begun else 0)


def upgraded(setup: Setup) -> Move:
    """Upgrade the second node, and measure."""
    time.sleep(BEFORE_S)
    began_s = time.monotonic()
    setup.stack.medusa("node", "drain", SECOND)
    setup.second.stop()
    setup.second.start()
    setup.stack.medusa("node", "undrain", SECOND)
    ended_s = time.monotonic()
    return _measured(setup.arrivals, began_s, ended_s, 1_000 * (ended_s - began_s), None)


def _measured(
    arrivals: Arrivals, began_s: float, ended_s: float, whole_ms: float, built: Built | None
) -> Move:
    """The pause of what has just ended, and the latencies around it."""
    time.sleep(AFTER_S)
    pause_s, usual_s = arrivals.pause_s(began_s - BEFORE_S, began_s, ended_s + AFTER_S)
    before_ms = arrivals.late_ms(began_s - BEFORE_S, began_s)
    meanwhile_ms = arrivals.late_ms(built.before.at_s, built.after.at_s) if built else []
    return Move(
        1_000 * pause_s, 1_000 * usual_s, whole_ms, built, tuple(before_ms), tuple(meanwhile_ms)
    )


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.moves", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--job", choices=tuple(JOBS), default="stateless", help="(%(default)s)")
    add("--sides", nargs="+", choices=(FLINK, OURS), default=(OURS,), help="not flink of a join")
    add("--moves", type=int, default=20, help="(%(default)s)")
    add("--rate", type=float, default=1_000.0, help="readings a second (%(default)s)")
    add("--keys", type=int, default=0, help="readings sent before the first move")
    add("--state", type=int, default=0, help="MiB of a join's state before the first move")
    add("--upgrade", action="store_true", help="upgrade the second node after each move")
    add("--warm-up", type=float, default=40.0, help="seconds before the first move (%(default)s)")
    add("--level", type=float, default=30.0, help="seconds of both level; 0: none (%(default)s)")
    options = parser.parse_args(arguments)
    if FLINK in options.sides and options.job == "join":
        parser.error("there is no join of Flink's")
    if options.state and options.job != "join":
        parser.error("only a join's state is filled")
    os.environ.setdefault("MEDUSA_SPARK_MASTER", "local[2]")
    for side in options.sides:
        with running_stack(node=side == OURS) as stack, ExitStack() as undo:
            schema_id = _begin(stack, undo, options)
            if side == FLINK:
                peer_moves.measure(stack, schema_id, options)
            else:
                _measure_own(stack, schema_id, options)
    return 0


def _begin(stack: Stack, undo: ExitStack, options: argparse.Namespace) -> int:
    """Create the topics and start the feed; returns the schema's id."""
    create_topics(stack, SOURCE, JOBS[options.job][2])
    schema_id = register_reading(stack)
    if options.keys:
        seconds = options.keys / 20_000
        fed(feed(stack, "steady", schema_id, rate=20_000, warm_up=0, seconds=seconds))
    feeding = feed(stack, "steady", schema_id, rate=options.rate, warm_up=0, seconds=86_400)
    undo.callback(feeding.wait, 30)
    undo.callback(feeding.terminate)
    return schema_id


def _measure_own(stack: Stack, schema_id: int, options: argparse.Namespace) -> None:
    join = WIDE_JOIN if options.state else JOIN
    (stack.folder / "join.yaml").write_text(join, encoding="utf-8")
    network, fragment, topic = JOBS[options.job]
    with (
        SecondNode(stack) as node,
        our_side(stack, f"{options.job}.yaml", network),
        arrivals_of(stack, topic) as arrivals,
    ):
        setup = Setup(stack, node, network, fragment, arrivals)
        time.sleep(options.warm_up)
        if options.state:
            _fill(setup, schema_id, options.state * MIB)
        _moves(setup, options)
        if options.level:
            _level(setup, options)


def _fill(setup: Setup, schema_id: int, wanted: int) -> None:
    """Send readings until the files of the owner's state are so large, in bytes."""
    sent, owner = 0, setup.owner
    while (size := _state_size(setup, owner)) < wanted:
        if sent >= FILLED_MOST:
            raise SystemExit(f"{sent:,} readings have made {size_text(size)} of state")
        fed(feed(setup.stack, "steady", schema_id, rate=FILLED_AT, warm_up=0, seconds=FILLED_S))
        sent += round(FILLED_AT * FILLED_S)
        time.sleep(FILLED_S)
    print(f"{sent:,} readings have made {size_text(size)} of state", flush=True)
    time.sleep(BEFORE_S)


def _state_size(setup: Setup, node: str) -> int:
    folder = setup.checkpoint(node)
    return sum(sizes_in(folder / "state")) if folder else 0


def _moves(setup: Setup, options: argparse.Namespace) -> None:
    found: list[Move] = []
    upgrades: list[Move] = []
    for number in range(options.moves):
        found.append(moved(setup))
        print(f"{number + 1:3}: {found[-1]}", flush=True)
        if options.upgrade and setup.owner == SECOND:
            upgrades.append(upgraded(setup))
            print(f"upgrade: {upgrades[-1]}", flush=True)
    print(f"  parts of the moves, median (worst): {_parts_text(setup)}", flush=True)
    size = state_bytes(setup.stack.folder) / 2**20
    for what, every in (("moves", found), ("upgrades", upgrades)):
        if every:
            text = summary(f"{options.job}, {len(every)} {what}", every, PAUSES_MS[what])
            print(text, flush=True)
    print(f"state files of all checkpoints {size:.0f} MiB", flush=True)


def _parts_text(setup: Setup) -> str:
    """The parts of all moves whose markers the topic still has."""
    name = f"{setup.network}.{setup.fragment}"
    kinds = ("--kind", "claimed", "--kind", "released", "--last", EVENTS)
    lines = setup.stack.medusa("events", name, *kinds, "-o", "json").splitlines()
    topic = f"local.{name}.markers"
    markers = [
        Written(decode_marker(value, topic).epoch, at_ms)
        for _, at_ms, value in topic_records(setup.stack, topic)
    ]
    return parts_text(parts_ms(markers, entries_of(map(json.loads, lines))))


def _level(setup: Setup, options: argparse.Namespace) -> None:
    """Let the other node follow, and measure while it is level."""
    document = setup.stack.folder / f"{options.job}.yaml"
    text = document.read_text(encoding="utf-8") + "\nreliability: active_standby\n"
    document.write_text(text, encoding="utf-8")
    setup.stack.medusa("deploy", "-f", document.name, "--yes")
    wait_for(lambda: _is_level(setup), LEVEL_WITHIN_S, "the follower")
    time.sleep(BEFORE_S)
    owner = setup.owner
    pids = (setup.pid(owner), setup.pid(setup.other(owner)))
    began = [Used.of(pid) for pid in pids]
    commits = _sampled(setup, setup.other(owner), options.level)
    ended = [Used.of(pid) for pid in pids]
    shares = [b.share_since(a) for a, b in zip(began, ended, strict=True)]
    lags = _lags_ms(setup, commits) if commits else []
    print(level_text(options.job, shares, lags), flush=True)


def _sampled(setup: Setup, follower: str, seconds: float) -> Commits | None:
    """The batches of a follower; None: it has no checkpoint, since there is nothing to follow."""
    phases = _standbys(setup)
    checkpoint = setup.checkpoint(follower)
    if checkpoint is None or any(one["phase"] == "waiting" for one in phases):
        time.sleep(seconds)
        return None
    commits = Commits(checkpoint, SOURCE)
    commits.sample_for(seconds)
    return commits


def _lags_ms(setup: Setup, commits: Commits) -> Sequence[float]:
    """The lags of the owner's batches between the first and the last commit that were seen."""
    times_ms = [one.at_ms for one in commits.found.values()] or [0.0]
    written = [
        Reached(
            marker.written_at_ms,
            {at.partition: end for at, end in marker.end.items() if at.topic == SOURCE},
        )
        for marker in markers_of(setup.stack, setup.network, setup.fragment)
    ]
    recent = [one for one in written if min(times_ms) <= one.at_ms <= max(times_ms)]
    return lags_ms(recent, tuple(commits.found.values()))


def _standbys(setup: Setup) -> list[dict[str, object]]:
    rows = json.loads(setup.stack.medusa("status", setup.network, "-o", "json"))["fragments"]
    return [one for row in rows for one in row["standbys"]]


def _is_level(setup: Setup) -> bool:
    found = _standbys(setup)
    return bool(found) and all(one["level"] for one in found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
