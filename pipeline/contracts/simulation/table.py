"""Table of many runs: contracts, loads, ranges and seeds; as text, CSV and a plot."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.contracts.simulation.picture import Line, picture
from pipeline.contracts.simulation.run import Result


@dataclass(frozen=True, slots=True)
class Run:
    """Figures of a run.

    Args:
        contracts: least number of partners.
        load: in parts of the capacity.
        units: width of the price range.
        seed: of the random numbers.
        initial: misallocated in per cent of the capacity, before.
        final: the same at the end.
        moves: per participant.
        messages: per participant.
        moved_s: when the last move was, in simulated seconds.
    """

    contracts: int
    load: float
    units: int
    seed: int
    initial: float
    final: float
    moves: float
    messages: float
    moved_s: float


def run_of(key: tuple[int, float, int, int], result: Result) -> Run:
    """The figures of a result; the key: contracts, load, units, seed."""
    messages = result.messages / result.participants
    moved_s = result.moved_ms / 1_000
    return Run(*key, result.initial, result.final, result.moves_each, messages, moved_s)


def as_csv(runs: Iterable[Run]) -> str:
    """The figures of runs, a line each."""
    lines = ["contracts,load,range,seed,initial,final,moves,messages,moved_s"]
    for one in runs:
        figures = f"{one.initial:.4f},{one.final:.4f},{one.moves:.4f},{one.messages:.2f}"
        key = f"{one.contracts},{one.load:g},{one.units},{one.seed}"
        lines.append(f"{key},{figures},{one.moved_s:.1f}")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Row:
    """Runs that differ only in their seed: mean and worst of each figure."""

    contracts: int
    load: float
    units: int
    initial: float
    final: float
    worst: float
    moves: float
    moves_most: float


def rows(runs: Sequence[Run]) -> list[Row]:
    """The rows of a table, in the order of the runs."""
    groups: dict[tuple[int, float, int], list[Run]] = {}
    for one in runs:
        groups.setdefault((one.contracts, one.load, one.units), []).append(one)
    return [
        Row(
            *key,
            _mean(one.initial for one in found),
            _mean(one.final for one in found),
            max(one.final for one in found),
            _mean(one.moves for one in found),
            max(one.moves for one in found),
        )
        for key, found in groups.items()
    ]


def plot(runs: Sequence[Run]) -> str:
    """Misallocated capacity by number of contracts, a line for each load and range, as SVG."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in rows(runs):
        name = f"{row.load:.0%}, {'fixed' if not row.units else f'{row.units} u'}"
        lines.setdefault(name, []).append((float(row.contracts), row.final))
    drawn = [Line(name, tuple(sorted(points))) for name, points in lines.items()]
    return picture("misallocated capacity in per cent", "least number of contracts", drawn)


def plot_of(result: Result) -> str:
    """Misallocated capacity of one run over time, as SVG."""
    points = tuple((one.at_ms / 1_000, one.misallocated) for one in result.samples)
    line = Line("misallocated", points)
    return picture("misallocated capacity in per cent", "seconds", [line])


def _mean(figures: Iterable[float]) -> float:
    found = tuple(figures)
    return sum(found) / len(found)
