"""Latency of precise and of rollback recovery: of a stateless fragment, and of 1-second windows.

    python -m benchmarks.rollback                      # both jobs, 8 rounds each
    python -m benchmarks.rollback --jobs window --repeat 4

Both sides run on one node, one after the other, in turned order each time, at 1,000 readings a
second over 4 partitions; a `read_committed` consumer measures, as in `benchmarks.latency`. Results
are compared with a reference. Printed are medians of the rounds, and ratios of rollback to precise.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.harness import (
    Stack,
    create_topics,
    delete_topics,
    feed,
    our_side,
    register_reading,
    running_stack,
)
from benchmarks.latency import Measured, readings_of, show, stateless, watch, windowed
from benchmarks.readings import HERE
from benchmarks.rounds import completed, ratios, spread
from benchmarks.sides import OURS, Run, decoder, in_turn, remove
from pipeline.reliability import Recovery

JOBS = ("stateless", "window")
SIDES = (Recovery.PRECISE.value, Recovery.ROLLBACK.value)
RELIABILITY = "\nreliability: {{mode: upstream_backup, recovery: {recovery}}}\n"


def measure(
    stack: Stack, job: str, recovery: str, turn: int, schema_id: int, options: argparse.Namespace
) -> Measured:
    """One side in one round."""
    number = len(SIDES) * turn + SIDES.index(recovery)
    run = Run(job, OURS, number)
    run = replace(run, source=f"{run.source}-{run.name}")
    create_topics(stack, run.source)
    text = run.document((HERE / f"{job}.yaml").read_text(encoding="utf-8"))
    document = stack.folder / f"{run.name}.yaml"
    document.write_text(text + RELIABILITY.format(recovery=recovery), encoding="utf-8")
    with our_side(stack, document.name, run.network):
        feeding = feed(
            stack,
            "steady",
            schema_id,
            (run.source,),
            rate=options.rate,
            warm_up=options.warm_up,
            seconds=options.seconds,
        )
        seen, from_ms, _ = watch(stack, run.targets, feeding)
    sent, decode = readings_of(stack, run.source), decoder(stack, run)
    if job == "stateless":
        figures = stateless(run, seen, sent, decode)
    else:
        figures = windowed(run, seen, sent, decode, None)
    (found,) = figures(from_ms)
    remove(stack, run)
    delete_topics(stack, run.source)
    found = replace(found, side=recovery)
    show(found)
    return found


def summarise(job: str, rounds: Sequence[Sequence[Measured]]) -> None:
    """Print medians with 90 % intervals, and the ratios of rollback to precise."""
    print(f"\n{job}, medians of {len(rounds)} rounds [90 % interval]")
    figures = {
        name: [{one.side: getattr(one, name) for one in found} for found in rounds]
        for name in ("p50", "p99")
    }
    for side in SIDES:
        p50, p99 = (spread([figure[side] for figure in figures[name]]) for name in figures)
        print(f"{side:>13}: p50 {p50.text()} ms, p99 {p99.text()} ms")
    precise, rollback = SIDES
    p50, p99 = (ratios(figures[name], rollback, precise) for name in figures)
    print(f"rollback / precise: p50 {p50.text(2)}, p99 {p99.text(2)}", flush=True)


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rollback", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--jobs", nargs="+", default=JOBS, choices=JOBS)
    add("--repeat", type=int, default=8, help="rounds; the order of the sides is turned each time")
    add("--rate", type=float, default=1_000.0, help="readings a second (%(default)s)")
    add("--warm-up", type=float, default=20.0, help="seconds before measuring (%(default)s)")
    add("--seconds", type=float, default=30.0, help="seconds measured (%(default)s)")
    options = parser.parse_args(arguments)
    incomplete = False
    with running_stack() as stack:
        schema_id = register_reading(stack)
        for job in options.jobs:

            def measured(turn: int, job: str = job) -> list[Measured]:
                sides = in_turn(SIDES, turn)
                return [measure(stack, job, one, turn, schema_id, options) for one in sides]

            rounds = completed(options.repeat, measured)
            summarise(job, rounds)
            incomplete |= len(rounds) < options.repeat
    return 1 if incomplete else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
