"""The `medusa registry` group."""

import click

from pipeline.cli.lazy import Entry, LazyGroup

_HERE = "pipeline.cli.commands.registry"


@click.group(
    "registry",
    cls=LazyGroup,
    entries={
        "serve": Entry(f"{_HERE}.serve", "Serve the schema registry until it is asked to end."),
    },
)
def command() -> None:
    """The schema registry that lies in ZooKeeper, for servers without `medusa up`."""
