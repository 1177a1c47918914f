"""The same change of place with Flink: stopped with a savepoint, and started again from it.

    python -m benchmarks.moves --job window --sides flink ours

Both processes are local environments of one task manager each. The second one runs before the
first is asked to stop, and waits for the savepoint, as a cluster's idle task manager would; a Java
that has to start first would take seconds more. The savepoint is in a folder that both reach. What
Flink does not do: nothing follows, so the pause contains the savepoint, the start of the job, the
load of the state, and the time to its first checkpoint.
"""

import argparse
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.arrivals import Arrivals, arrivals_of
from benchmarks.harness import SOURCE, STARTED_WITHIN_S, Stack, wait_for
from benchmarks.move_figures import AFTER_S, BEFORE_S, Move, summary
from benchmarks.peers.programs import Job
from benchmarks.peers.running import peer_side, prepare
from benchmarks.sides import JOBS

SIDE = "flink"
RUNS = "ready"
"""What a program prints once its job runs."""


def measure(stack: Stack, schema_id: int, options: argparse.Namespace) -> None:
    """Move the job of `options` again and again, beside a feed that runs."""
    prepare(stack, SIDE)
    (target,) = JOBS[options.job].topics
    found: list[Move] = []
    with ExitStack() as undo:
        job = _job(stack, schema_id, options.job, target, 0)
        running = undo.enter_context(ExitStack())
        running.enter_context(peer_side(stack, SIDE, job, JOBS[options.job].result_schema))
        arrivals = undo.enter_context(arrivals_of(stack, target))
        time.sleep(options.warm_up)
        for number in range(options.moves):
            following = _job(stack, schema_id, options.job, target, number + 1, job.savepoint)
            waiting = undo.enter_context(ExitStack())
            result_schema = JOBS[options.job].result_schema
            waiting.enter_context(peer_side(stack, SIDE, following, result_schema))
            found.append(_moved(arrivals, job, following))
            running.close()
            running, job = waiting, following
            print(f"{SIDE} {number + 1:3}: {found[-1]}", flush=True)
    print(summary(f"{SIDE}, {options.job}, {len(found)} moves", found), flush=True)


def _job(
    stack: Stack, schema_id: int, name: str, target: str, number: int, restore: Path | None = None
) -> Job:
    return Job(
        name,
        "moved",
        stack.bootstrap_servers,
        SOURCE,
        (target,),
        schema_id,
        stack.folder / f"peer-moved-{number}",
        0,
        restore=restore,
    )


def _moved(arrivals: Arrivals, job: Job, following: Job) -> Move:
    """Stop a job, and wait until the next one has written results."""
    time.sleep(BEFORE_S)
    began_s = time.monotonic()
    job.stop.touch()
    said = following.scratch / "out"
    wait_for(lambda: RUNS in said.read_text(), STARTED_WITHIN_S, "the job from the savepoint")
    ran_s = time.monotonic()
    wait_for(lambda: arrivals.last_s > ran_s, STARTED_WITHIN_S, "its first result")
    ended_s = time.monotonic()
    time.sleep(AFTER_S)
    pause_s, usual_s = arrivals.pause_s(began_s - BEFORE_S, began_s, ended_s + AFTER_S)
    return Move(1_000 * pause_s, 1_000 * usual_s, 1_000 * (ended_s - began_s))
