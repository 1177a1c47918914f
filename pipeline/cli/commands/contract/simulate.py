"""`medusa contract simulate`: simulated federations that trade load by contracts."""

import random
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import median

import click

from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.table import Table
from pipeline.contracts.simulation.network import Network
from pipeline.contracts.simulation.run import Result, run
from pipeline.contracts.simulation.scenario import Loads, Scenario, Tasks
from pipeline.contracts.simulation.table import Row, Run, as_csv, plot, plot_of, rows, run_of
from pipeline.errors import UsageError

COLUMNS = ("contracts", "load", "range", "initial", "final", "worst", "moves", "most")


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
@click.option("--spread", default=0.0, help="Prices differ by up to this part.")
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
    spread: float,
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
    found: list[Run] = []
    result: Result | None = None
    keys = product(
        _numbers(contracts, "--contracts"), _numbers(load, "--load"), _numbers(ranges, "--range")
    )
    for (least, percent, units), number in product(keys, range(first, first + seeds)):
        scenario = Scenario(
            participants,
            least,
            percent / 100,
            units,
            spread,
            Tasks(tasks),
            Loads(loads),
            Network(most_ms=max(5, late), lost=lost, doubled=doubled),
            vanish,
            lie,
            flood,
        )
        result = run(
            scenario,
            random.Random(number),
            for_ms=None if for_s is None else for_s * 1_000,
            sample_ms=None if sample is None else sample * 1_000,
        )
        found.append(run_of((least, percent / 100, units, number), result))
    if csv is not None:
        csv.write_text(as_csv(found), "utf-8")
    if svg is not None and result is not None:
        svg.write_text(plot_of(result) if sample and len(found) == 1 else plot(found), "utf-8")
    _show(session, first, rows(found), result)


def _show(session: Session, seed: int, found: Sequence[Row], result: Result | None) -> None:
    lines = tuple(
        (
            str(one.contracts),
            f"{one.load:.0%}",
            str(one.units),
            f"{one.initial:.1f}",
            f"{one.final:.3f}",
            f"{one.worst:.3f}",
            f"{one.moves:.2f}",
            f"{one.moves_most:.2f}",
        )
        for one in found
    )
    data = [
        {
            "contracts": one.contracts,
            "load": one.load,
            "range": one.units,
            "initial_percent": one.initial,
            "final_percent": one.final,
            "final_percent_worst": one.worst,
            "moves": one.moves,
            "moves_most": one.moves_most,
        }
        for one in found
    ]
    worth = [] if result is None else list(result.worth)
    session.printer.show(
        {"seed": seed, "rows": data, "worth": worth},
        Table(COLUMNS, lines, numbers=frozenset(COLUMNS)),
    )
    if worth:
        session.printer.note(
            f"worth of taking part: median {median(worth):.1%}, least {min(worth):.2%} of what a "
            "participant earns who runs nothing but others' tasks"
        )


def _numbers(text: str, option: str) -> list[int]:
    """Whole numbers, separated by commas.

    Raises:
        UsageError: they are none.
    """
    try:
        return [int(one) for one in text.split(",")]
    except ValueError as error:
        raise UsageError(
            f"{option}: {text!r} is no list of whole numbers", hint="write them as 75,90,110."
        ) from error
