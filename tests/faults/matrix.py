"""Partition of the matrix of cases and faults into parts of one run each. Pure.

A node on two cores runs some ten fragments; a fault takes each of them seconds. So cases are
divided into shares, each for one node, and a run tests one turn of the faults on each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """The `number`-th of `count` parts; from 1."""

    number: int
    count: int


WHOLE = Part(1, 1)


def part(text: str) -> Part:
    """Read `K/N`.

    Raises:
        ValueError: it is not a part.
    """
    number, count = map(int, text.split("/"))
    if not 1 <= number <= count:
        raise ValueError(text)
    return Part(number, count)


def cases_of(fragments: Mapping[str, int], share: Part) -> tuple[str, ...]:
    """The cases of a share; shares have about equal numbers of fragments.

    Args:
        fragments: the number of each case.
        share: which one.
    """
    shares: list[list[str]] = [[] for _ in range(share.count)]
    for case in sorted(fragments, key=lambda name: (-fragments[name], name)):
        min(shares, key=lambda names: sum(fragments[name] for name in names)).append(case)
    return tuple(shares[share.number - 1])


def faults_of(faults: Sequence[str], turn: Part, share: Part) -> tuple[str, ...]:
    """The faults of a share in a turn.

    All turns together are all faults for every share. With as many turns as shares, each turn has
    every fault once.
    """
    return tuple(faults[(turn.number + share.number) % turn.count :: turn.count])
