"""The `medusa dlq` group."""

import click

from pipeline.cli.common import common_options
from pipeline.cli.lazy import Entry, LazyGroup

_HERE = __package__


@click.group(
    "dlq",
    cls=LazyGroup,
    entries={
        "list": Entry(f"{_HERE}.list", "Count dead letters by fragment and reason."),
        "show": Entry(f"{_HERE}.show", "Print dead letters, decoded, with what is wrong."),
        "redrive": Entry(f"{_HERE}.redrive", "Send dead letters to their fragment again, once."),
        "purge": Entry(f"{_HERE}.purge", "Remove old dead letters for good."),
    },
)
@common_options
def command(**_options: object) -> None:
    """Dead letters: records that a fragment could not process, kept byte for byte."""
