"""`medusa contract demo`: three participants that trade load, with the reason of each decision."""

import random
from pathlib import Path

import click

from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.contracts.simulation.demonstration import Demonstration, demonstrate, drawn, explained
from schemas.json_value import JsonObject


@click.command("demo")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the messages' latencies.")
@click.option("--svg", type=click.Path(path_type=Path), help="Write the loads over time here.")
@with_session
def command(session: Session, *, seed: int, svg: Path | None) -> None:
    """Simulate three participants whose loads change, and explain each decision.

    Needs no server. Prints what happens, then each decision with its prices, costs, alternatives
    and reasons, and the loads that follow.

    \b
    Example:
      medusa contract demo --svg loads.svg
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    found = demonstrate(random.Random(seed))
    if svg is not None:
        svg.write_text(drawn(found), "utf-8")
    session.printer.show(_data(found), explained(found))


def _data(found: Demonstration) -> JsonObject:
    return {
        "chapters": [
            {
                "number": one.number,
                "at_s": one.at_s,
                "text": one.text,
                "decisions": [
                    {"at_s": why.at_ms / 1_000, "participant": why.me, "text": why.explained()}
                    for why in one.decisions
                ],
                "loads": {str(party): load for party, load in one.loads.items()},
            }
            for one in found.chapters
        ]
    }
