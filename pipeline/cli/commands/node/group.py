"""The `medusa node` group."""

import click

from pipeline.cli.common import common_options
from pipeline.cli.lazy import Entry, LazyGroup

_HERE = __package__


@click.group(
    "node",
    cls=LazyGroup,
    entries={
        "start": Entry(f"{_HERE}.start", "Run a node until it is asked to end."),
        "list": Entry(f"{_HERE}.list", "Show the nodes that are up."),
    },
)
@common_options
def command(**_options: object) -> None:
    """Nodes: agent processes, each with its own Spark session, that run fragments."""
