"""`python -m tests.histories --count 10000 --seed 1`: run random histories, report violations."""

import argparse
import logging
import sys
import time
from collections import Counter
from importlib import import_module

from tests.histories.chain import Script
from tests.histories.history import draw, run, written
from tests.histories.shrink import shrunk


def main() -> int:
    """Run histories; returns 1 if any failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.histories")
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--allow", default="", help="kinds of differences that are no failures")
    parser.add_argument("--only", default="", help="the kinds of steps that there may be")
    parser.add_argument("--mutant", default="", help="a defect of tests/histories/mutants")
    parser.add_argument("--all", action="store_true", help="go on after the first failure")
    parser.add_argument("--log", action="store_true", help="show the log of a failing history")
    parser.add_argument("--steps", default="", help="these steps instead of drawn ones")
    parser.add_argument("--append-time", action="store_true", help="the cluster stamps records")
    parser.add_argument("--rolls-back", action="store_true", help="with rollback recovery")
    options = parser.parse_args()
    if not options.mutant:
        return search(options)
    mutant = import_module(f"tests.histories.mutants.{options.mutant}")
    options.only = options.only or mutant.KINDS
    with mutant.mutated():
        return search(options)


def search(options: argparse.Namespace) -> int:
    """Run the histories of the options; returns 1 if any failed."""
    logging.disable()
    allowed = frozenset(filter(None, options.allow.split(",")))
    only = frozenset(filter(None, options.only.split(",")))
    began_s, found = time.monotonic(), Counter[str]()
    for number in range(options.count):
        seed = options.seed + number
        outcome = run(_script(options, seed, only), allowed)
        if outcome.kind:
            found[outcome.kind] += 1
            _say(f"seed {seed}: {outcome.wrong[0]}")
            if not options.all:
                short = shrunk(outcome, allowed)
                stamps = " --append-time" if short.script.append_time else ""
                stamps += " --rolls-back" if short.script.rolls_back else ""
                steps = " ".join(map(str, short.script.steps))
                _say(f'shrunk: --count 1 --seed {seed}{stamps} --steps "{steps}"')
                _say("\n".join(short.log if options.log else short.log[-12:]))
                return 1
        if number % 100 == 99:
            rate = (number + 1) / (time.monotonic() - began_s)
            _say(f"{number + 1} histories, {rate:.1f} a second, wrong: {dict(found)}")
    return 1 if found else 0


def _script(options: argparse.Namespace, seed: int, only: frozenset[str]) -> Script:
    if options.steps:
        how = {"append_time": options.append_time, "rolls_back": options.rolls_back}
        return written(seed, options.steps, **how)
    return draw(seed, only, rolls_back=options.rolls_back)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
