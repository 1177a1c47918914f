"""Command line of the fault tests: `python -m tests.faults.run --help`."""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from pipeline.cli.project import load_project
from pipeline.errors import MedusaError
from tests.faults.cases import CASES
from tests.faults.matrix import WHOLE, cases_of, faults_of, part
from tests.faults.scenario import run
from tests.faults.strikes import FAULTS
from tests.faults.world import RunFailedError, Worlds

ALL = "all"
SEED_MAX = 2**31


@dataclass(frozen=True, slots=True)
class Job:
    """One run: cases that are tested together with some faults."""

    round: int
    cases: tuple[str, ...]
    faults: tuple[str, ...]
    seed: int


@dataclass(frozen=True, slots=True)
class Done:
    """Result of a run; `wrong` is empty if all was exact."""

    job: Job
    seconds: float
    expected: int
    stable_s: float
    wrong: str


def main(arguments: Sequence[str]) -> int:
    """Run the selected cases and faults; returns 0 if all results were exact."""
    options = _options(arguments)
    if options.list:
        _list()
        return 0
    folder = Path(tempfile.mkdtemp(prefix="medusa-faults-"))
    cache = Path(load_project({}, os.environ, Path.cwd()).settings.cache).expanduser()
    worlds = Worlds(folder, cache.absolute())
    done: list[Done] = []
    try:
        done.extend(_run(worlds, job) for job in _jobs(options))
    except KeyboardInterrupt:
        _say("broken off")
    finally:
        worlds.drop()
        if options.keep:
            _say(f"logs and data are in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    _table(done)
    return 1 if any(one.wrong for one in done) or not done else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults.run", description="Networks under faults, judged exactly."
    )
    add = parser.add_argument
    add("--cases", nargs="+", default=[ALL], choices=[ALL, *CASES], metavar="CASE")
    add("--faults", nargs="+", default=[ALL], choices=[ALL, *FAULTS], metavar="FAULT")
    add("--share", type=part, default=WHOLE, metavar="K/N", help="one of N parts of the cases")
    add("--turn", type=part, default=WHOLE, metavar="K/N", help="one of N parts of the faults")
    add("--rounds", type=int, default=1, help="how often each (%(default)s)")
    add("--seed", type=int, default=1, help="of everything left to chance (%(default)s)")
    add("--together", action="store_true", help="all cases at once on one node")
    add("--chain", action="store_true", help="all faults in one run, in a random order")
    add("--keep", action="store_true", help="keep the folder with logs and data")
    add("--list", action="store_true", help="list cases and faults")
    return parser.parse_args(arguments)


def _jobs(options: argparse.Namespace) -> Iterator[Job]:
    random = Random(options.seed)
    named = tuple(CASES) if ALL in options.cases else tuple(options.cases)
    cases = cases_of({name: len(CASES[name].columns) for name in named}, options.share)
    faults = tuple(FAULTS) if ALL in options.faults else tuple(options.faults)
    faults = faults_of(faults, options.turn, options.share)
    of_cases = [cases] if options.together else [(case,) for case in cases]
    for number in range(1, options.rounds + 1):
        for some in of_cases:
            for struck in [faults] if options.chain else [(fault,) for fault in faults]:
                order = tuple(random.sample(struck, len(struck)))
                yield Job(number, some, order, random.randrange(SEED_MAX))


def _run(worlds: Worlds, job: Job) -> Done:
    _say(f"round {job.round}, seed {job.seed}: {_words(job.cases)} x {_words(job.faults)}")
    began = time.monotonic()
    expected, stable_s, wrong = 0, 0.0, ""
    try:
        report = run(
            worlds.get(),
            [CASES[name] for name in job.cases],
            [FAULTS[name] for name in job.faults],
            job.seed,
            lambda text: _say(f"  {text}"),
        )
        expected = sum(verdict.expected for verdict in report.verdicts)
        stable_s = max((struck.stable_s for struck in report.struck), default=0.0)
        if report.findings:
            wrong = f"{len(report.findings)} findings"
            _say(report.words())
    except (RunFailedError, MedusaError, RuntimeError) as error:
        wrong = str(error).splitlines()[0]
        _say(f"  {error}")
        worlds.drop()
    return Done(job, time.monotonic() - began, expected, stable_s, wrong)


def _table(done: Sequence[Done]) -> None:
    rows = [("ROUND", "CASES", "FAULTS", "SEED", "SECONDS", "STABLE AFTER", "RESULTS", "VERDICT")]
    rows += [
        (
            str(one.job.round),
            _words(one.job.cases),
            _words(one.job.faults),
            str(one.job.seed),
            f"{one.seconds:.0f}",
            f"{one.stable_s:.1f} s",
            f"{one.expected:,}",
            one.wrong or "exact",
        )
        for one in done
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    _say("")
    for row in rows:
        _say("  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)).rstrip())
    bad = sum(bool(one.wrong) for one in done)
    _say(f"\n{len(done)} runs, {bad} not exact")


def _list() -> None:
    for name, case in CASES.items():
        _say(f"case   {name:24} {', '.join(case.columns)}")
    for name, fault in FAULTS.items():
        _say(f"fault  {name:24} {fault.does}")


def _words(names: Sequence[str]) -> str:
    return ",".join(names) if len(names) <= len("few") else f"{len(names)} of them"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
