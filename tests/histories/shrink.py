"""Shrinking of failing histories: removes steps while the same kind of failure occurs."""

from dataclasses import replace

from tests.histories.chain import Outcome
from tests.histories.history import run


def shrunk(outcome: Outcome, allowed: frozenset[str], tries: int = 200) -> Outcome:
    """A history with fewer steps and the same kind of failure."""
    size = max(1, len(outcome.script.steps) // 2)
    while tries > 0:
        shorter = None
        steps = outcome.script.steps
        for at in range(0, len(steps), size):
            script = replace(outcome.script, steps=steps[:at] + steps[at + size :])
            found = run(script, allowed)
            tries -= 1
            if found.kind == outcome.kind:
                shorter = found
                break
        if shorter is not None:
            outcome = shorter
        elif size == 1:
            break
        else:
            size //= 2
    return outcome
