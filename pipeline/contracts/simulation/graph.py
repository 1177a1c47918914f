"""Random contract graphs: a random tree, then random partners until each has enough."""

from collections.abc import Sequence
from typing import Final

from pipeline.contracts.simulation.chance import Chance
from pipeline.errors import InputError

LEAST_PARTICIPANTS: Final = 2


def random_graph(count: int, least: int, chance: Chance) -> list[tuple[int, int]]:
    """Pairs of partners, as in the simulations of the paper; each pair once, the lower one first.

    Args:
        count: of participants, who are numbered from 0.
        least: how many partners each has at least; with 1 the graph is a tree.
        chance: random numbers.

    Raises:
        InputError: there are not so many others.
    """
    if count < LEAST_PARTICIPANTS or not 1 <= least < count:
        raise InputError(
            f"{count} participants cannot have {least} partners each",
            place="contract graph",
            hint="give at least 2 participants, and fewer partners than those.",
        )
    pairs = {(chance.randrange(one), one) for one in range(1, count)}
    degree = [0] * count
    for pair in pairs:
        for one in pair:
            degree[one] += 1
    for one in range(count):
        while degree[one] < least:
            other = chance.randrange(count)
            pair = (min(one, other), max(one, other))
            if other != one and pair not in pairs:
                pairs.add(pair)
                degree[one] += 1
                degree[other] += 1
    return sorted(pairs)


def diameter(count: int, pairs: Sequence[tuple[int, int]]) -> int:
    """The longest of the shortest ways between two participants; exact, so not for large graphs."""
    partners: list[list[int]] = [[] for _ in range(count)]
    for one, other in pairs:
        partners[one].append(other)
        partners[other].append(one)
    return max(_farthest(start, partners) for start in range(count))


def _farthest(start: int, partners: Sequence[Sequence[int]]) -> int:
    seen, reached, steps = {start}, [start], 0
    while True:
        found = {other for one in reached for other in partners[one]} - seen
        if not found:
            return steps
        seen |= found
        reached, steps = sorted(found), steps + 1
