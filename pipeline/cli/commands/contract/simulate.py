"""`medusa contract simulate`: simulated federations that trade load by contracts."""

import gc
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import click

from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.table import Table
from pipeline.contracts.simulation.network import Network
from pipeline.contracts.simulation.run import Result, run
from pipeline.contracts.simulation.scenario import Loads, Scenario, Tasks
from pipeline.contracts.simulation.table import Key, Row, Run, as_csv, plot, plot_of, rows, run_of
from pipeline.errors import UsageError
from schemas.json_value import JsonObject

COLUMNS = ("contracts", "load", "range", "initial", "final", "worst", "moves", "most")
SAMPLED = ("alone", "ended", "repeated", "median worth", "least worth", "worse off")
Number = TypeVar("Number", int, float)


@click.command("simulate")
@click.option("--participants", default=100, show_default=True, help="Number of participants.")
@click.option(
    "--contracts", default="10", show_default=True, metavar="N,…", help="Least partners of each."
)
@click.option(
    "--load", default="90", show_default=True, metavar="PERCENT,…", help="Load of all together."
)
@click.option(
    "--range",
    "ranges",
    default="1",
    show_default=True,
    metavar="UNITS,…",
    help="Width of the price range in load units; 0: fixed prices.",
)
@click.option(
    "--tasks",
    type=click.Choice([one.value for one in Tasks]),
    default="unit",
    help="Tasks of one load unit, or of several in processor and bytes.",
)
@click.option(
    "--loads",
    type=click.Choice([one.value for one in Loads]),
    default="constant",
    help="How loads change.",
)
@click.option(
    "--spread", default="0", show_default=True, metavar="PART,…", help="By which prices differ."
)
@click.option("--lost", default=0.0, help="Part of the messages that is lost.")
@click.option("--doubled", default=0.0, help="Part of the messages that comes twice.")
@click.option("--late", default=50, metavar="MS", help="Longest latency of a message.")
@click.option("--vanish", default=0.0, help="Part of the participants that is away for a minute.")
@click.option("--lie", default=0.0, help="Part that accepts what it then does not take.")
@click.option("--flood", default=0.0, help="Part that sends more offers than it may.")
@click.option("--for", "for_s", type=int, metavar="SECONDS", help="How long, in simulated time.")
@click.option("--sample", type=int, metavar="SECONDS", help="Measure so often, and what it saves.")
@click.option("--seed", type=int, help="First seed; default: by chance. It is printed.")
@click.option("--seeds", default=1, show_default=True, help="Number of runs with other seeds.")
@click.option(
    "--processes", type=click.IntRange(min=1), default=1, show_default=True, help="At a time."
)
@click.option("--csv", type=click.Path(path_type=Path), help="Write the figures of each run here.")
@click.option("--svg", type=click.Path(path_type=Path), help="Write a plot here.")
@with_session
def command(
    session: Session,
    *,
    participants: int,
    contracts: str,
    load: str,
    ranges: str,
    tasks: str,
    loads: str,
    spread: str,
    lost: float,
    doubled: float,
    late: int,
    vanish: float,
    lie: float,
    flood: float,
    for_s: int | None,
    sample: int | None,
    seed: int | None,
    seeds: int,
    processes: int,
    csv: Path | None,
    svg: Path | None,
) -> None:
    """Simulate federations, and print how far from acceptable their allocations end.

    Needs no server. Every run repeats by its seed. Misallocated capacity is the lower of excess and
    spare capacity, in per cent.

    \b
    Examples:
      medusa contract simulate
      medusa contract simulate --participants 995 --contracts 1,3,5,10,20 --load 75,90,110 \\
        --range 0,1,3 --seeds 5 --csv table.csv --svg table.svg
      medusa contract simulate --loads spiking --sample 5 --for 600 --svg spikes.svg
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    first = random.SystemRandom().randrange(10**6) if seed is None else seed
    session.printer.note(f"seed {first}")
    common = Scenario(
        participants,
        tasks=Tasks(tasks),
        loads=Loads(loads),
        network=Network(most_ms=max(5, late), lost=lost, doubled=doubled),
        vanish=vanish,
        lie=lie,
        flood=flood,
    )
    times = _Times(for_s, sample)
    orders = [
        _Order(Key(least, percent / 100, units, part), number, common, times)
        for least, percent, units, part, number in product(
            _numbers(contracts, "--contracts", int),
            _numbers(load, "--load", int),
            _numbers(ranges, "--range", int),
            _numbers(spread, "--spread", float),
            range(first, first + seeds),
        )
    ]
    if sample is not None and len(orders) == 1:
        result = _run(orders[0])
        found, drawn = [run_of(orders[0].key, first, result)], plot_of(result)
    else:
        found = _figures_of(orders, processes)
        drawn = plot(found)
    if csv is not None:
        csv.write_text(as_csv(found), "utf-8")
    if svg is not None:
        svg.write_text(drawn, "utf-8")
    _show(session, first, rows(found), sampled=sample is not None)


@dataclass(frozen=True, slots=True)
class _Times:
    """How long runs are, and how often they are measured; in simulated seconds."""

    whole_s: int | None
    sample_s: int | None


@dataclass(frozen=True, slots=True)
class _Order:
    """A run that is wanted; `common` is the scenario, up to what the key says."""

    key: Key
    seed: int
    common: Scenario
    times: _Times


def _figures_of(orders: Sequence[_Order], processes: int) -> list[Run]:
    """The figures of all runs, in their order."""
    if min(processes, len(orders)) == 1:
        return [_figures(order) for order in orders]
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        return list(pool.map(_figures, orders))


def _figures(order: _Order) -> Run:
    return run_of(order.key, order.seed, _run(order))


def _run(order: _Order) -> Result:
    """Run it. Participants are values without cycles, so looking for some would be in vain."""
    gc.disable()
    try:
        key, times = order.key, order.times
        scenario = replace(
            order.common,
            contracts=key.contracts,
            load=key.load,
            units=key.units,
            spread=key.spread,
        )
        return run(
            scenario,
            random.Random(order.seed),
            for_ms=None if times.whole_s is None else times.whole_s * 1_000,
            sample_ms=None if times.sample_s is None else times.sample_s * 1_000,
        )
    finally:
        gc.enable()


def _show(session: Session, seed: int, found: Sequence[Row], *, sampled: bool) -> None:
    columns = (*COLUMNS, *SAMPLED) if sampled else COLUMNS
    if any(one.key.spread for one in found):
        columns = ("spread", *columns)
    lines = tuple(tuple(_cells(one)[name] for name in columns) for one in found)
    session.printer.show(
        {"seed": seed, "rows": [_data(one) for one in found]},
        Table(columns, lines, numbers=frozenset(columns)),
    )


def _cells(row: Row) -> dict[str, str]:
    key, worth = row.key, row.worth
    cells = {
        "spread": f"{key.spread:g}",
        "contracts": str(key.contracts),
        "load": f"{key.load:.0%}",
        "range": str(key.units),
        "initial": f"{row.initial:.1f}",
        "final": f"{row.final:.3f}",
        "worst": f"{row.worst:.3f}",
        "moves": f"{row.moves:.2f}",
        "most": f"{row.moves_most:.2f}",
        "alone": f"{row.alone:.1f}",
        "ended": f"{row.ended:.2f}",
        "repeated": str(row.repeated),
    }
    if worth is not None:
        cells["median worth"] = f"{worth.median:.1%}"
        cells["least worth"] = f"{worth.least:.3%}"
        cells["worse off"] = str(worth.worse)
    return cells


def _data(row: Row) -> JsonObject:
    key, worth = row.key, row.worth
    found: JsonObject = {
        "contracts": key.contracts,
        "load": key.load,
        "range": key.units,
        "spread": key.spread,
        "initial_percent": row.initial,
        "final_percent": row.final,
        "final_percent_worst": row.worst,
        "alone_percent": row.alone,
        "moves": row.moves,
        "moves_most": row.moves_most,
        "ended": row.ended,
        "repeated": row.repeated,
    }
    if worth is not None:
        found["worth"] = {"median": worth.median, "least": worth.least, "worse_off": worth.worse}
    return found


def _numbers(text: str, option: str, number: Callable[[str], Number]) -> list[Number]:
    """Numbers, separated by commas.

    Raises:
        UsageError: they are none.
    """
    try:
        return [number(one) for one in text.split(",")]
    except ValueError as error:
        raise UsageError(
            f"{option}: {text!r} is no list of such numbers", hint="write them as 75,90,110."
        ) from error
