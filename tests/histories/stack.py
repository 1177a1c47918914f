"""`python -m tests.histories.stack --count 100 --seed 1`: random histories on real servers.

Several histories run concurrently on the same nodes, which are killed, stopped, replaced, and
lose their checkpoints.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Final

from pipeline.cli.project import load_project
from schemas.compatibility import Level
from tests.faults.world import RunFailedError, World, world
from tests.histories.chain import Script, Step
from tests.histories.documents import CHANGES
from tests.histories.history import SETTLE_DEPLOYS, draw
from tests.histories.real import STEPS, RealHistory

KINDS: Final = frozenset(CHANGES) | frozenset(STEPS) - {"produce", "drain"}
SETTLE_WITHIN_S: Final = 120.0
FAILED_FOR_S: Final = 20.0
"""A lane that has failed for this long does not recover by itself."""
PAUSE_MAX_S: Final = 4.0
_POLL_S = 0.5
Tell = Callable[[str], None]


def script(seed: int, steps: int) -> Script:
    """The script of a seed: so many steps, besides records and waits."""
    drawn = draw(seed, KINDS, (1, steps))
    kinds = {"run": "drain"}
    changed = (Step(kinds.get(step.kind, step.kind), step.seed) for step in drawn.steps)
    return Script(seed, tuple(changed))


@contextmanager
def prepared(folder: Path, cache: Path) -> Iterator[World]:
    """Servers whose registry accepts all schemas."""
    with world(folder, cache) as around:
        around.registry.admin.set_level(None, Level.NONE)
        yield around


def wave(around: World, scripts: Sequence[Script], tell: Tell) -> list[RealHistory]:
    """Run some histories concurrently, with one network each.

    Raises:
        RunFailedError: a node does not start.
    """
    rng = Random(scripts[0].seed)
    histories = [RealHistory(one, around, f"h{one.seed}") for one in scripts]
    around.supervise()
    for history in histories:
        history.begin()
    for number in range(max(len(one.steps) for one in scripts)):
        struck = _strike(around, rng)
        for history in histories:
            if struck:
                history.log(f"-- {struck}")
            history.step(number)
        around.supervise()
        time.sleep(rng.uniform(0.0, PAUSE_MAX_S))
    _settle(histories, tell)
    for history in histories:
        with suppress(RunFailedError):  # its failure is recorded already
            around.medusa("destroy", history.net.name, "--yes")
    return histories


def _settle(histories: Sequence[RealHistory], tell: Tell) -> None:
    """Wait until all is read and published; missing results are lost."""
    left = list(histories)
    for deploys_before in range(SETTLE_DEPLOYS + 1):
        for history in left:
            history.log("settle")
            history.produce_plain()
        left = _await(left)
        for history in list(left):
            stopped = history.failed()
            history.check_stopped(stopped, answered=deploys_before > 0)
            if deploys_before < SETTLE_DEPLOYS:
                history.deploy(history.net, Random(0), stopped)
        for history in left:
            tell(f"  {history.net.name}: {'; '.join(f'{n}: {text}' for n, text in history.open())}")
        if not left:
            return
    for history in left:
        history.give_up()


def _await(histories: Sequence[RealHistory]) -> list[RealHistory]:
    """Wait for histories; returns those not done, by a failed lane or a timeout."""
    ends_s = time.monotonic() + SETTLE_WITHIN_S
    failed_s: dict[str, float] = {}
    left = list(histories)
    while left and time.monotonic() < ends_s:
        left = [history for history in left if not history.is_done()]
        for history in left:
            name = history.net.name
            if history.failed():
                failed_s.setdefault(name, time.monotonic())
            else:
                failed_s.pop(name, None)
        now_s = time.monotonic()
        waiting = [one for one in left if now_s - failed_s.get(one.net.name, now_s) < FAILED_FOR_S]
        if not waiting:
            break
        time.sleep(_POLL_S)
    return left


# --- nodes ----------------------------------------------------------------------------------------


def _restarted(around: World) -> None:
    around.node.kill()
    around.restart()


def _robbed(around: World) -> None:
    around.node.kill()
    shutil.rmtree(around.node.checkpoints, ignore_errors=True)
    around.restart()


def _stopped(around: World) -> None:
    around.node.stop()


def _taken_over(around: World) -> None:
    new = around.new_node()
    new.start()
    around.node.kill()
    around.node = new
    around.await_ready(new)


def _taken_over_with_checkpoints(around: World) -> None:
    new = around.new_node(around.node.checkpoints)
    new.start()
    around.await_ready(new)
    around.node.kill()
    around.node = new


STRIKES: Mapping[str, Callable[[World], None]] = {
    "the node is killed and starts again": _restarted,
    "the node is killed and loses its checkpoints": _robbed,
    "the node is stopped during the next step": _stopped,
    "another node takes over": _taken_over,
    "another node takes over, on the same checkpoints": _taken_over_with_checkpoints,
}
STRIKES_OFTEN: Final = 0.35


def _strike(around: World, rng: Random) -> str:
    """Possibly inject a fault of the node; returns its description."""
    if rng.random() > STRIKES_OFTEN:
        return ""
    what = rng.choice(sorted(STRIKES))
    STRIKES[what](around)
    return what


# --- the command ----------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Run the selected histories; returns 0 if all were correct."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.histories.stack", description="Random histories on real servers."
    )
    add = parser.add_argument
    add("--count", type=int, default=8, help="how many (%(default)s)")
    add("--seed", type=int, default=1, help="of the first one; each has the next (%(default)s)")
    add("--together", type=int, default=4, help="so many at once (%(default)s)")
    add("--steps", type=int, default=6, help="deploys and the like of each, at most (%(default)s)")
    add("--log", action="store_true", help="show what happened in each one")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="medusa-histories-"))
    cache = Path(load_project({}, os.environ, Path.cwd()).settings.cache).expanduser()
    wrong = 0
    try:
        with prepared(folder, cache.absolute()) as around:
            for first in range(options.seed, options.seed + options.count, options.together):
                last = min(first + options.together, options.seed + options.count)
                scripts = [script(seed, options.steps) for seed in range(first, last)]
                _say(f"seeds {first} to {last - 1}")
                for history in wave(around, scripts, _say):
                    wrong += bool(history.outcome.wrong)
                    _tell(history, log=options.log)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _say(f"{options.count} histories, {wrong} wrong")
    return 1 if wrong else 0


def _tell(history: RealHistory, *, log: bool) -> None:
    outcome = history.outcome
    commits = sum(ledger.batches for ledger in history.ledgers.values())
    _say(f"  seed {outcome.script.seed}: {len(history.nets) - 1} deploys, {commits} batches")
    if log or outcome.wrong:
        _say("\n".join(outcome.log))
    for wrong in outcome.wrong:
        _say(f"seed {outcome.script.seed}: {wrong}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
