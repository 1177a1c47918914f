"""The `medusa offsets` group."""

import click

from pipeline.cli.common import common_options
from pipeline.cli.lazy import Entry, LazyGroup

_HERE = __package__


@click.group(
    "offsets",
    cls=LazyGroup,
    entries={
        "show": Entry(f"{_HERE}.show", "Show how far fragments have read their inputs."),
        "export": Entry(f"{_HERE}.export", "Print positions as other tools take them."),
    },
)
@common_options
def command(**_options: object) -> None:
    """Positions: up to where the results of a fragment are committed, per input partition."""
