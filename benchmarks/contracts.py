"""Findings about federations: every table and figure of `docs/federation/findings.md`.

    python -m benchmarks.contracts FOLDER
    python -m benchmarks.contracts FOLDER --only table several

Each finding is one `medusa contract` command. It is printed with its output, seconds, processor
seconds and memory; figures and CSV files are written into the folder. `offer` is one offer of
10,000 tasks with 20 contracts. Needs no server.
"""

import argparse
import os
import random
import shlex
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from statistics import quantiles
from typing import Final

from pipeline.contracts.costs import Levels, QueueingCost
from pipeline.contracts.load import Load, Task
from pipeline.contracts.messages import LoadsChanged, Tick
from pipeline.contracts.money import Currency
from pipeline.contracts.participant import participant, step
from pipeline.contracts.state import Participant, Settings
from pipeline.contracts.terms import (
    Contract,
    ContractId,
    Kind,
    Limits,
    PartyId,
    Price,
    TaskId,
    TaskSet,
)
from pipeline.ids import Millis

_SEEDS: Final = "--seed 100 --seeds 5 --processes 2"
FINDINGS: Final = {
    "demo": "demo --svg {svg}",
    "table": "simulate --participants 995 --contracts 1,3,5,10,20 --load 75,90,110 --range 0,1,3 "
    f"{_SEEDS} --csv {{csv}} --svg {{svg}}",
    "several": "simulate --participants 995 --contracts 3,10 --tasks several --load 75,90,110 "
    f"--range 1,20,40 {_SEEDS} --csv {{csv}} --svg {{svg}}",
    "varying": "simulate --participants 100 --loads varying --load 75,90 --range 0,1,3 --sample 5 "
    f"{_SEEDS} --csv {{csv}}",
    "spiking": "simulate --participants 100 --loads spiking --load 75,90 --range 0,1,3 --sample 5 "
    f"{_SEEDS} --csv {{csv}}",
    "varying-run": "simulate --participants 100 --loads varying --load 75 --sample 5 --seed 100 "
    "--svg {svg}",
    "spiking-run": "simulate --participants 100 --loads spiking --load 75 --sample 5 --seed 100 "
    "--svg {svg}",
    "prices": "simulate --participants 300 --contracts 3,10,20 --load 75,90,110 --spread 0,0.1,0.3 "
    f"{_SEEDS} --csv {{csv}} --svg {{svg}}",
    "large": "simulate --participants 100000 --load 75 --seed 100",
}
OFFERS: Final = 200
TASKS: Final = 10_000
CONTRACTS: Final = 20


def main() -> int:
    """Run the findings that were asked for; the exit code is that of the worst command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=["offer", *FINDINGS], metavar="FINDING")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    wanted: list[str] = arguments.only or ["offer", *FINDINGS]
    if "offer" in wanted:
        _print(f"offer of {TASKS} tasks, {CONTRACTS} contracts: processor time {_offers()}")
    return max((_run(name, folder) for name in wanted if name in FINDINGS), default=0)


def _run(name: str, folder: Path) -> int:
    files = {kind: shlex.quote(str(folder / f"{name}.{kind}")) for kind in ("csv", "svg")}
    command = FINDINGS[name].format(**files)
    _print(f"\n{name}: medusa contract {command}")
    begun = time.monotonic()
    arguments = [sys.executable, "-m", "pipeline.cli.main", "contract", *shlex.split(command)]
    child = subprocess.Popen(arguments)
    _, status, used = os.wait4(child.pid, 0)
    seconds, cpu = time.monotonic() - begun, used.ru_utime + used.ru_stime
    _print(
        f"{seconds:.0f} s, {cpu:.0f} s of processor time, {used.ru_maxrss / 1024:.0f} MiB at most"
    )
    return os.waitstatus_to_exitcode(status)


def _offers() -> str:
    """Processor time of a step that offers; with other loads each time, so nothing is known."""
    chance, me = random.Random(1), PartyId("a")
    state, times = _sender(chance, me), []
    names = [held.task.id for held in state.portfolio.running]
    for _ in range(OFFERS):
        loads = {name: _load(chance) for name in names}
        changed = step(state, LoadsChanged(loads), Millis(0)).state
        changed = changed._replace(changed=False)  # only an offer is measured
        begun = time.process_time()
        offered = step(changed, Tick(), Millis(100_000))
        times.append(1_000 * (time.process_time() - begun))
        if offered.state.outgoing is None:
            raise RuntimeError("nothing was offered")
    cuts = quantiles(times, n=100)
    return f"median {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms, most {max(times):.1f} ms"


def _load(chance: random.Random) -> Load:
    """About a ten-thousandth of the threshold, in processor and bytes."""
    return Load(chance.uniform(0.002, 0.02), chance.uniform(0.002, 0.02))


def _sender(chance: random.Random, me: PartyId) -> Participant:
    levels = Levels(QueueingCost(Load(125.0, 125.0)), Load(0.01, 0.01), TASKS)
    places = Decimal("1E-9")
    price = Price(
        Currency("EUR"),
        Decimal(levels.fixed).quantize(places),
        Decimal(levels.delta(100)).quantize(places),
    )
    contracts = [
        Contract(
            ContractId(f"{number}"),
            Kind.LOAD,
            me,
            PartyId(f"b{number}"),
            price,
            TaskSet(frozenset({"any"})),
            Limits(10**6, 10**12, 10**12),
            Millis(0),
            Millis(10**12),
        )
        for number in range(CONTRACTS)
    ]
    tasks = [Task(TaskId(f"{number}"), me, _load(chance)) for number in range(TASKS)]
    return participant(me, Settings(levels.cost, levels.margin), tasks, contracts)


def _print(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
