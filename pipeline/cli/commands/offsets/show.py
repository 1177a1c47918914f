"""`medusa offsets show`: positions, ends and lags of a fragment's input partitions."""

import click

from pipeline.cli.completing import parts
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.table import Table
from pipeline.cli.times import time_text
from pipeline.operations.fragments import fragments_of, label
from pipeline.operations.positions import PartitionPosition, input_positions
from schemas.json_value import JsonObject

_COLUMNS = ("fragment", "topic", "partition", "position", "end", "lag", "log start", "next record")
_NUMBERS = frozenset({"partition", "position", "end", "lag", "log start"})


@click.command("show")
@click.argument("name", metavar="[NETWORK[.FRAGMENT]]", shell_complete=parts, default="")
@with_session
def command(session: Session, name: str) -> None:
    """Show how far every fragment, or those that are named, has read its input streams.

    The position is the next offset to read, from the last commit marker: results of everything
    before it are committed. Lag counts offsets, so it is at least the number of records. The time
    is the Kafka timestamp of the next record to read.

    \b
    Examples:
      medusa offsets show
      medusa offsets show tolls.tow_dispatch -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    rows: list[JsonObject] = []
    cells: list[tuple[str, ...]] = []
    with session.connect() as connections, session.printer.waiting("reading positions"):
        for fragment in fragments_of(name, connections):
            for one in input_positions(fragment, connections):
                names = fragment.names
                place = {"network": names.network.name, "fragment": names.fragment}
                rows.append({**place, "group": names.group, **_data(one)})
                cells.append((label(fragment), *_cells(one)))
    table = Table(_COLUMNS, tuple(cells), "no network is deployed", _NUMBERS)
    session.printer.show({"offsets": rows}, table)


def _data(one: PartitionPosition) -> JsonObject:
    return {
        "input": one.input,
        "topic": one.topic,
        "partition": one.partition,
        "position": one.position,
        "end": one.end,
        "lag": one.lag,
        "log_start": one.log_start,
        "next_record": time_text(one.next_ms),
    }


def _cells(one: PartitionPosition) -> tuple[str, ...]:
    gone = one.position is not None and one.position < one.log_start
    return (
        one.topic,
        str(one.partition),
        "-" if one.position is None else str(one.position),
        str(one.end),
        "-" if one.lag is None else str(one.lag),
        str(one.log_start),
        "gone" if gone else time_text(one.next_ms) or "-",
    )
