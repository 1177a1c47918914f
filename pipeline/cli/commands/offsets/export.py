"""`medusa offsets export`: committed positions in the formats of Spark and Kafka tools."""

import json
from collections.abc import Mapping
from typing import TypeAlias

import click

from pipeline.cli.completing import parts
from pipeline.cli.options import with_session
from pipeline.cli.output import Format
from pipeline.cli.session import Session
from pipeline.names import FragmentNames
from pipeline.operations.connections import Connections
from pipeline.operations.fragments import fragment_of, fragments_of
from pipeline.operations.positions import committed_positions
from pipeline.planner.plan import Fragment
from schemas.json_value import Encodable

Positions: TypeAlias = dict[str, dict[str, int]]
"""Topic → partition → offset."""

_SPARK, _KAFKA = "spark", "kafka"


@click.command("export")
@click.argument("name", metavar="NETWORK[.FRAGMENT]", shell_complete=parts)
@click.option(
    "--form",
    type=click.Choice([_SPARK, _KAFKA]),
    default=_SPARK,
    show_default=True,
    help="With -o table: the JSON of Spark's startingOffsets, or the CSV of "
    "kafka-consumer-groups --from-file.",
)
@with_session
def command(session: Session, name: str, form: str) -> None:
    """Print the committed positions of a fragment's input streams for other tools.

    Plain text is for one fragment; -o json and -o yaml give all fragments of a network, each with
    the name of its consumer group.

    \b
    Examples:
      medusa offsets export tolls.tow_dispatch
      medusa offsets export tolls.tow_dispatch --form kafka > positions.csv
      medusa offsets export tolls -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    plain = session.printer.format is Format.TABLE
    with session.connect() as connections:
        selected = (fragment_of(name, connections),) if plain else fragments_of(name, connections)
        found = [(one.names, _positions(one, connections)) for one in selected]
    if not plain:
        session.printer.show({"fragments": [_data(*one) for one in found]}, "")
        return
    positions = found[0][1]
    if form == _SPARK:
        session.printer.line(json.dumps(positions))
        return
    for topic, offsets in positions.items():
        for partition, offset in offsets.items():
            session.printer.line(f"{topic},{partition},{offset}")


def _positions(fragment: Fragment, connections: Connections) -> Positions:
    """Committed positions in the format of Spark's `startingOffsets`: partitions are text."""
    return {
        str(topic): {str(partition): int(at) for partition, at in sorted(offsets.items())}
        for topic, offsets in committed_positions(fragment, connections).items()
    }


def _data(names: FragmentNames, positions: Positions) -> Mapping[str, Encodable]:
    return {
        "network": names.network.name,
        "fragment": names.fragment,
        "group": names.group,
        "positions": positions,
    }
