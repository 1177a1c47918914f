"""The `medusa example` group."""

import click

from pipeline.cli.common import common_options
from pipeline.cli.lazy import Entry, LazyGroup

_HERE = __package__


@click.group(
    "example",
    cls=LazyGroup,
    entries={
        "list": Entry(f"{_HERE}.list", "List the examples that come with Medusa."),
        "run": Entry(f"{_HERE}.run", "Run one on made-up input, and check every result."),
    },
)
@common_options
def command(**_options: object) -> None:
    """Examples: networks with a producer, and a reference that their results are compared with."""
