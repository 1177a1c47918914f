"""`medusa offsets export`: positions in the forms that other tools take."""

import json
from typing import Any

import click

from pipeline.cli.completing import parts
from pipeline.cli.connections import Connections
from pipeline.cli.letters import fragment_of, fragments_of, label
from pipeline.cli.options import with_session
from pipeline.cli.output import Format
from pipeline.cli.positions import last_marker, starting_offsets
from pipeline.cli.session import Session
from pipeline.errors import RefusedError
from pipeline.markers.positions import by_topic
from pipeline.planner.plan import Fragment

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

    Plain text is of one fragment; -o json and -o yaml give all fragments of a network, each with
    the name of its consumer group.

    \b
    Examples:
      medusa offsets export tolls.tow_dispatch
      medusa offsets export tolls.tow_dispatch --form kafka > positions.csv
      medusa offsets export tolls -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    plain = session.printer.format is Format.TABLE
    with session.connect() as connections:
        asked = (fragment_of(name, connections),) if plain else fragments_of(name, connections)
        found = [_positions(fragment, connections) for fragment in asked]
    if not plain:
        session.printer.show({"fragments": found}, "")
        return
    positions: dict[str, dict[str, int]] = found[0]["positions"]
    if form == _SPARK:
        session.printer.line(json.dumps(positions))
        return
    for topic, offsets in positions.items():
        for partition, offset in offsets.items():
            session.printer.line(f"{topic},{partition},{offset}")


def _positions(fragment: Fragment, connections: Connections) -> dict[str, Any]:
    marker = last_marker(fragment.names, connections)
    if marker is None:
        raise RefusedError(
            "the fragment has not run yet, so it has no positions",
            place=f"fragment {label(fragment)}",
            hint="`medusa status` says whether a node has taken it up.",
        )
    names, topics = fragment.names, {stream.topic for stream in fragment.inputs}
    return {
        "network": names.network,
        "fragment": names.fragment,
        "group": names.group,
        "positions": starting_offsets(by_topic(marker.end, topics)),
    }
