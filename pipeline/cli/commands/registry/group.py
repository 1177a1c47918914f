"""The `medusa registry` group."""

import click

from pipeline.cli.common import common_options
from pipeline.cli.lazy import Entry, LazyGroup

_HERE = __package__


@click.group(
    "registry",
    cls=LazyGroup,
    entries={
        "serve": Entry(f"{_HERE}.serve", "Serve the schema registry until it is asked to end."),
    },
)
@common_options
def command(**_options: object) -> None:
    """The schema registry that lies in ZooKeeper, for servers without `medusa up`."""
