"""Delay of new results while a part of the input is missing, under a bound of availability.

    python -m benchmarks.availability                  # X = 5 s, seven cuts, three policies
    python -m benchmarks.availability --bound 3s --cuts 2 10 --policy process -o cuts.json

Windows of one second for each of 8 sites, a topic of three partitions, readings at a steady rate.
After a time without a fault, which gives the normal latency, the readings of one partition are kept
back for some seconds, and then sent; the others go on. A cut begins 300 ms before the end of a
window, so that the shortest one concerns a window, too. A reader of stable and tentative results
measures:

- `new`: the longest time from the end of a window that ended while the input was cut until its
  first result, tentative or stable, less the normal median; `after`: the same of windows that ended
  from healing until everything was settled; `< X`: whether both are below the bound;
- `tentative`: how many results were; `!`: there were some, although the cut was shorter than the
  nine tenths of the bound for which results are held back; how many were confirmed, replaced,
  undone;
- `stable`: the time from healing until the last stable result that the cut held back; `done`: from
  healing to the last done mark;
- `windows`: whether the stable results, up to the next cut, are those computed from all readings.

Ends with 1 if stable results differ, or tentative ones were not settled in time.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import cut_plot, reference
from benchmarks.availability_figures import (
    HEADER,
    PLOTTED,
    Cut,
    CutFigures,
    History,
    Normal,
    Phase,
    as_json,
    figures,
    normal,
    plotted,
)
from benchmarks.harness import (
    FINISHED_WITHIN_S,
    Stack,
    create_topics,
    delete_topics,
    fed,
    feed,
    our_side,
    register_reading,
    running_stack,
)
from benchmarks.lane_log import topic_records
from benchmarks.latency import PREFIX_BYTES
from benchmarks.readings import HERE, READING_JSON
from benchmarks.sides import OURS, Run, decoder, remove
from pipeline import durations
from pipeline.availability import Policy
from pipeline.reader.opening import open_reader
from pipeline.reader.reader import Reader
from pipeline.reader.results import Stable, Tentative, Undone
from schemas import avro, codec

PARTITIONS = 3
CUTS_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
POLICIES = tuple(one.value for one in Policy)
AVAILABILITY = "\navailability: {{bound: {bound}, policy: {policy}}}\n"
BEFORE_END_MS = 300
"""So long before the end of a window a cut begins."""
POLL_S = 0.02
DAY_S = 86_400


class Watch:
    """A reader of an output that notes everything it is told, and when: its handler."""

    def __init__(self) -> None:
        self.history = History()

    def on_tentative(self, result: Tentative) -> None:
        """A tentative result."""
        self.history.tentative(result, now_ms())

    def on_stable(self, result: Stable) -> None:
        """A stable result."""
        self.history.stable(result, now_ms())

    def on_undo(self, undone: Undone) -> None:
        """A result that does not count any more."""
        self.history.undone(undone, now_ms())

    def on_done(self, generation: str) -> None:
        """The done mark of a generation."""
        self.history.done[generation] = now_ms()


@dataclass(frozen=True, slots=True)
class Cutter:
    """Cuts the input of a running network, and reads its output all the time.

    Args:
        reader: of the output.
        history: what it has told.
        held: the file while which the feed keeps back one partition.
        rest_s: the time without a fault after each cut.
    """

    reader: Reader
    history: History
    held: Path
    rest_s: float

    def read_for(self, seconds: float) -> None:
        """Read for a time."""
        ends_s = time.monotonic() + seconds
        while (left_s := ends_s - time.monotonic()) > 0:
            self.reader.poll(min(POLL_S, left_s))

    def read_until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Read until something is so, for a limited time; whether it is."""
        ends_s = time.monotonic() + seconds
        while not done():
            if time.monotonic() > ends_s:
                return False
            self.reader.poll(POLL_S)
        return True

    def cut(self, seconds: float) -> Phase:
        """Cut the input for a time, and wait until everything is settled, but not for ever."""
        self.read_for(before_cut_ms(now_ms()) / 1_000)
        cut_ms = now_ms()
        self.held.touch()
        self.read_for(seconds)
        self.held.unlink()
        healed_ms = now_ms()
        within_s = FINISHED_WITHIN_S + seconds
        settled = self.read_until(lambda: self.history.settled(healed_ms), within_s)
        settled_ms = now_ms() if settled else None
        self.read_for(self.rest_s)
        return Phase(cut_ms, healed_ms, settled_ms, now_ms())

    def finish(self, until_ms: float) -> None:
        """Read until there are stable results of windows well after a time."""
        after_ms = until_ms + 2 * reference.WINDOW_MS
        if not self.read_until(lambda: self.history.stable_ms > after_ms, FINISHED_WITHIN_S):
            raise SystemExit(f"no stable results came in {FINISHED_WITHIN_S:.0f} s after the cuts")


def now_ms() -> float:
    """Now, in ms since 1970."""
    return time.time_ns() / 1e6


def before_cut_ms(at_ms: float) -> float:
    """How long to wait until a window ends in `BEFORE_END_MS`.

    >>> before_cut_ms(5_100.0), before_cut_ms(5_800.0)
    (600.0, 900.0)
    """
    return (-BEFORE_END_MS - at_ms) % reference.WINDOW_MS


@dataclass(frozen=True, slots=True)
class Observed:
    """A run under one policy, as its reader saw it; times in ms since 1970.

    Args:
        history: all that the reader was told.
        normal_ms: begin and end of the time without a fault.
        phases: of the cuts, in order.
        sent: the number of readings.
    """

    history: History
    normal_ms: tuple[float, float]
    phases: tuple[Phase, ...]
    sent: int


def observe(stack: Stack, run: Run, schema_id: int, options: argparse.Namespace) -> Observed:
    """Feed a running network, cut its input, and read its output."""
    watch, held = Watch(), stack.folder / f"{run.name}.held"
    servers = {"kafka.bootstrap_servers": stack.bootstrap_servers}
    feeding = feed(
        stack,
        "steady",
        schema_id,
        (run.source,),
        held=held,
        partitions=PARTITIONS,
        rate=options.rate,
        warm_up=0,
        seconds=DAY_S,
    )
    try:
        with open_reader(run.targets[0], watch, settings=servers) as reader:
            cutter = Cutter(reader, watch.history, held, options.rest)
            cutter.read_for(options.warm_up)
            from_ms = now_ms()
            cutter.read_for(options.normal)
            until_ms = now_ms()
            phases = tuple(cutter.cut(seconds) for seconds in options.cuts)
            cutter.finish(phases[-1].until_ms)
    finally:
        held.unlink(missing_ok=True)
        feeding.terminate()
        sent = fed(feeding)["sent"]
    return Observed(watch.history, (from_ms, until_ms), phases, sent)


def measure(
    stack: Stack, policy: str, schema_id: int, options: argparse.Namespace
) -> tuple[Normal, tuple[CutFigures, ...]]:
    """All cuts under one policy, on a network of its own; the usual latency, and their figures."""
    run = Run("window", OURS, POLICIES.index(policy))
    run = replace(run, source=f"{run.source}-{run.name}")
    create_topics(stack, run.source, partitions=PARTITIONS)
    text = run.document((HERE / "window.yaml").read_text(encoding="utf-8"))
    bound = AVAILABILITY.format(bound=durations.format(options.bound), policy=policy)
    (stack.folder / f"{run.name}.yaml").write_text(text + bound, encoding="utf-8")
    with our_side(stack, f"{run.name}.yaml", run.network):
        seen = observe(stack, run, schema_id, options)
    expected = expected_windows(stack, run, seen.sent)
    found = stable_windows(stack, run, seen.history)
    remove(stack, run)
    delete_topics(stack, run.source)
    phases = seen.phases
    before = reference.compare(expected, found, 0, int(phases[0].cut_ms))
    if not before.exact:
        raise SystemExit(
            f"{policy}: before the first cut {before.lost} windows are lost, {before.wrong} wrong"
        )
    usual = normal(seen.history.results, *seen.normal_ms)
    if usual is None:
        raise SystemExit(f"{policy}: no window ended in {options.normal:g} s: measure for longer")
    cuts = []
    # Windows belong to a cut until the next one begins, which is never at the end of a window.
    ends_ms = (*(phase.cut_ms for phase in phases[1:]), phases[-1].until_ms)
    for number, phase in enumerate(phases):
        seconds, end_ms = options.cuts[number], ends_ms[number]
        told = figures(Cut(policy, seconds, options.bound), phase, seen.history, usual)
        compared = reference.compare(expected, found, int(phase.cut_ms), int(end_ms))
        cuts.append(replace(told, lost=compared.lost, wrong=compared.wrong))
        if options.plots is not None:
            cut_ms = round(phase.healed_ms - phase.cut_ms)
            picture = cut_plot.picture(plotted(phase, seen.history), cut_ms, PLOTTED)
            name = f"{policy}-{number + 1}-{seconds:g}s.svg"
            (options.plots / name).write_text(picture, encoding="utf-8")
    return usual, tuple(cuts)


def expected_windows(stack: Stack, run: Run, sent: int) -> reference.Windows:
    """The reference of all readings, which have to be as many as were sent."""
    schema = avro.parse(READING_JSON)
    readings = [
        codec.decode(schema, schema, value[PREFIX_BYTES:])
        for _, _, value in topic_records(stack, run.source)
    ]
    if len(readings) != sent:
        raise SystemExit(f"{run.source} has {len(readings)} readings, {sent} were sent")
    return reference.averages(readings)


def stable_windows(
    stack: Stack, run: Run, history: History
) -> list[tuple[reference.Group, reference.Total]]:
    """The stable results, decoded."""
    decode = decoder(stack, run)
    stable = [one.value for one in history.results if one.value is not None]
    return [reference.window_of(decode(value)) for value in stable]


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.availability", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--bound", type=durations.parse, default="5s", help="X, such as 3s (%(default)s)")
    add("--cuts", type=float, nargs="+", default=CUTS_S, help="seconds of each cut, in order")
    add("--policy", nargs="+", default=POLICIES, choices=POLICIES)
    add("--rate", type=float, default=1_000.0, help="readings a second (%(default)s)")
    add("--warm-up", type=float, default=60.0, help="seconds before (%(default)s)")
    add("--normal", type=float, default=60.0, help="seconds before the first cut, measured")
    add("--rest", type=float, default=10.0, help="seconds after each cut (%(default)s)")
    add("-o", "--output", type=Path, help="a file for everything that was measured, as JSON")
    add("--plots", type=Path, help="a folder for a picture of each cut")
    options = parser.parse_args(arguments)
    if options.plots is not None:
        options.plots.mkdir(parents=True, exist_ok=True)
    usual: dict[str, Normal] = {}
    cuts: list[CutFigures] = []
    with running_stack() as stack:
        schema_id = register_reading(stack)
        for policy in dict.fromkeys(options.policy):
            usual[policy], found = measure(stack, policy, schema_id, options)
            cuts += found
            print(f"\n{policy}: {usual[policy]}\n{HEADER}", *found, sep="\n", flush=True)
    if options.output is not None:
        told = as_json(options.bound, options.rate, usual, cuts)
        options.output.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    return 0 if all(one.right for one in cuts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
