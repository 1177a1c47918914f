"""Runner of the stages of a tier: `python -m tools.run_stages first|second|all [STAGE …]`.

Two at a time, in the order of `tools.stages`; at the end those that need the whole machine, one
after the other. Each stage writes a log below `build/stages/`, which is printed as a whole when
the stage ends; files of its tests remain there if it failed. All stages run, also after a failure.
With names only those run; what they need is then assumed to be there. The exit code is 0 if all
passed, else 1; an interrupt ends all stages and their servers.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

from tools.stages import LOGS, Outcome, Stage, Tier, named, report, stages

ROOT = Path(__file__).parents[1]
MEASURED = Path(__file__).parent / "measured.py"
AT_ONCE = 2
"""Stages that run at the same time; each takes up to 5 GiB of memory."""
SEED_MAX = 2**31
ENDS_WITHIN_S = 60.0
"""Time limit after an interrupt; then the rest of a stage is killed."""


class Run:
    """The running stages, and the outcomes of those that have ended.

    Args:
        logs: folder of their logs.
        names: all stages of the run.
    """

    def __init__(self, logs: Path, names: Iterable[str]) -> None:
        self._logs = logs
        self._ended = {name: threading.Event() for name in names}
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._ending = False

    def stage(self, stage: Stage) -> Outcome:
        """Run a stage, once the stages that it needs have ended, and print its log."""
        try:
            for name in stage.needs:
                if name in self._ended:
                    self._ended[name].wait()
            return self._logged(stage)
        finally:
            self._ended[stage.name].set()

    def _logged(self, stage: Stage) -> Outcome:
        self._say(f"[{stage.name}] begins")
        log = self._logs / f"{stage.name}.log"
        with log.open("wb") as output:
            outcome = self._outcome(stage, output.fileno())
        took = f"{outcome.wall_s:.0f} s, {outcome.cpu_s:.0f} s of CPU time"
        result = "passed" if outcome.passed else "FAILED"
        if outcome.passed:
            shutil.rmtree(self._logs / stage.name, ignore_errors=True)
        text = log.read_text(encoding="utf-8", errors="replace")
        self._say(f"\n[{stage.name}]\n{text}[{stage.name}] {result}: {took}\n")
        return outcome

    def end(self, number: int, _: FrameType | None) -> None:
        """End all stages, and start no more."""
        self._ending = True
        self._say(f"signal {number}: ending all stages")
        for process in tuple(self._running):
            _signal(process, signal.SIGTERM)

    def _outcome(self, stage: Stage, output: int) -> Outcome:
        if self._ending:
            return Outcome(stage.name, passed=False, wall_s=0.0, cpu_s=0.0)
        measures = self._logs / f"{stage.name}.json"
        measures.unlink(missing_ok=True)
        os.write(output, f"$ {' '.join(stage.command)}\n".encode())
        process = subprocess.Popen(
            [sys.executable, str(MEASURED), str(measures), *stage.command],
            cwd=ROOT,
            env={**os.environ, **stage.environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        self._running.add(process)
        try:
            code = self._wait(process)
        finally:
            self._running.discard(process)
        found = json.loads(measures.read_text("utf-8")) if measures.exists() else {}
        for left in found.get("left_behind", ()):
            os.write(output, f"left behind and killed: {left}\n".encode())
        return Outcome(stage.name, code == 0, found.get("wall_s", 0.0), found.get("cpu_s", 0.0))

    def _wait(self, process: "subprocess.Popen[bytes]") -> int:
        kills_at = float("inf")
        while True:
            try:
                return process.wait(1.0)
            except subprocess.TimeoutExpired:
                if self._ending and kills_at == float("inf"):
                    kills_at = time.monotonic() + ENDS_WITHIN_S
                if time.monotonic() > kills_at:
                    _signal(process, signal.SIGKILL)

    def _say(self, text: str) -> None:
        with self._lock:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()


def _signal(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    """Send a signal to the process group that a stage leads, if it still runs."""
    if process.poll() is None:
        os.killpg(process.pid, number)


def main(arguments: Sequence[str]) -> int:
    """Run a tier, or some of its stages; returns 0 if all of them passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tier", choices=[tier.value for tier in Tier])
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="only these")
    parser.add_argument("--seed", type=int, help="of the second tier; else a random one")
    options = parser.parse_args(arguments)
    seed = random.randrange(SEED_MAX) if options.seed is None else options.seed
    try:
        chosen = named(stages(Tier(options.tier), seed), options.stages)
    except ValueError as error:
        parser.error(str(error))
    logs = ROOT / LOGS
    logs.mkdir(parents=True, exist_ok=True)
    began_s = time.monotonic()
    run = Run(logs, (stage.name for stage in chosen))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, run.end)
    with ThreadPoolExecutor(AT_ONCE) as workers:
        outcomes = [*workers.map(run.stage, [stage for stage in chosen if not stage.alone])]
    outcomes += [run.stage(stage) for stage in chosen if stage.alone]
    table = report(outcomes, time.monotonic() - began_s)
    sys.stdout.write(f"\n{table}\n")
    return 0 if all(one.passed for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
