"""The `medusa catalog` group."""

import click

from pipeline.cli.common import common_options
from pipeline.cli.lazy import Entry, LazyGroup

_HERE = __package__


@click.group(
    "catalog",
    cls=LazyGroup,
    entries={
        "backup": Entry(f"{_HERE}.backup", "Write the catalog and our schemas into a file."),
        "upgrade": Entry(f"{_HERE}.upgrade", "Let the newest format be written from now on."),
        "restore": Entry(f"{_HERE}.restore", "Bring a catalog back from such a file."),
    },
)
@common_options
def command(**_options: object) -> None:
    """The catalog: networks with their versions, epochs, and the schemas of our own registry."""
