"""Table of many runs: contracts, loads, ranges, prices and seeds; as text, CSV and plots."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import NamedTuple

from pipeline.contracts.simulation.picture import Line, picture
from pipeline.contracts.simulation.run import Result


class Key(NamedTuple):
    """What the runs of a row have in common.

    Args:
        contracts: least number of partners.
        load: in parts of the capacity.
        units: width of the price range.
        spread: of the prices.
    """

    contracts: int
    load: float
    units: int
    spread: float = 0.0


@dataclass(frozen=True, slots=True)
class Worth:
    """What taking part was worth to the participants of a run, in parts of `Result.worth`.

    Args:
        least: to the one that gained least.
        median: of all.
        worse: number of participants that were worse off.
    """

    least: float
    median: float
    worse: int


@dataclass(frozen=True, slots=True)
class Run:
    """Figures of a run.

    Args:
        key: what was run.
        seed: of the random numbers.
        initial: misallocated in per cent of the capacity, before.
        final: the same at the end; the mean of the second half of the time, if it was sampled.
        alone: as `final`, if each ran its own tasks.
        moves: per participant.
        ended: decisions to end stays, per participant.
        repeated: tasks that went to and fro; see `Tally`.
        messages: per participant.
        moved_s: when the last move was, in simulated seconds.
        worth: None: it was not sampled.
    """

    key: Key
    seed: int
    initial: float
    final: float
    alone: float
    moves: float
    ended: float
    repeated: int
    messages: float
    moved_s: float
    worth: Worth | None = None


_NOTHING = 1e-9


def run_of(key: Key, seed: int, result: Result) -> Run:
    """The figures of a result."""
    last = result.samples[-1]
    late = [one for one in result.samples if 2 * one.at_ms >= last.at_ms]
    worth = None
    if result.worth:
        worse = sum(gain < -_NOTHING for gain in result.worth)
        worth = Worth(min(result.worth), median(result.worth), worse)
    return Run(
        key,
        seed,
        result.initial,
        fmean(one.misallocated for one in late),
        fmean(one.alone for one in late),
        last.moves / result.participants,
        last.ended / result.participants,
        last.repeated,
        result.messages / result.participants,
        result.moved_ms / 1_000,
        worth,
    )


_CSV = (
    "contracts,load,range,spread,seed,initial,final,alone,moves,ended,repeated,messages,moved_s,"
    "worth_least,worth_median,worse_off"
)


def as_csv(runs: Iterable[Run]) -> str:
    """The figures of runs, a line each."""
    lines = [_CSV]
    for one in runs:
        key, worth = one.key, one.worth
        gained = ",," if worth is None else f"{worth.least:.5f},{worth.median:.5f},{worth.worse}"
        lines.append(
            f"{key.contracts},{key.load:g},{key.units},{key.spread:g},{one.seed},"
            f"{one.initial:.4f},{one.final:.4f},{one.alone:.4f},{one.moves:.4f},{one.ended:.4f},"
            f"{one.repeated},{one.messages:.2f},{one.moved_s:.1f},{gained}"
        )
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Row:
    """Runs that differ only in their seed: mean and worst of each figure, as in `Run`."""

    key: Key
    initial: float
    final: float
    worst: float
    alone: float
    moves: float
    moves_most: float
    ended: float
    repeated: int
    worth: Worth | None


def rows(runs: Sequence[Run]) -> list[Row]:
    """The rows of a table, in the order of the runs."""
    groups: dict[Key, list[Run]] = {}
    for one in runs:
        groups.setdefault(one.key, []).append(one)
    return [
        Row(
            key,
            fmean(one.initial for one in found),
            fmean(one.final for one in found),
            max(one.final for one in found),
            fmean(one.alone for one in found),
            fmean(one.moves for one in found),
            max(one.moves for one in found),
            fmean(one.ended for one in found),
            max(one.repeated for one in found),
            _worst([one.worth for one in found if one.worth is not None]),
        )
        for key, found in groups.items()
    ]


def _worst(found: Sequence[Worth]) -> Worth | None:
    """The least gain of all runs, the mean of their medians, and all that were worse off."""
    if not found:
        return None
    least = min(one.least for one in found)
    return Worth(least, fmean(one.median for one in found), sum(one.worse for one in found))


def plot(runs: Sequence[Run]) -> str:
    """Misallocated capacity by number of contracts, a line for each load and range, as SVG."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in rows(runs):
        key = row.key
        name = f"{key.load:.0%}, {'fixed' if not key.units else f'{key.units} u'}"
        if key.spread:
            name += f", ±{key.spread:.0%}"
        lines.setdefault(name, []).append((float(key.contracts), row.final))
    drawn = [Line(name, tuple(sorted(points))) for name, points in lines.items()]
    return picture("misallocated capacity in per cent", "least number of contracts", drawn)


def plot_of(result: Result) -> str:
    """Misallocated capacity of one run over time, with contracts and without, as SVG."""
    times = [one.at_ms / 1_000 for one in result.samples]
    moved = [one.moves / result.participants for one in result.samples]
    lines = [
        Line(
            "each its own tasks",
            tuple(zip(times, (one.alone for one in result.samples), strict=True)),
        ),
        Line(
            "with contracts",
            tuple(zip(times, (one.misallocated for one in result.samples), strict=True)),
        ),
        Line("moves of each so far", tuple(zip(times, moved, strict=True))),
    ]
    return picture("misallocated capacity in per cent", "seconds", lines)
