"""The `medusa config` group."""

import click

from pipeline.cli.common import common_options
from pipeline.cli.lazy import Entry, LazyGroup


@click.group(
    "config",
    cls=LazyGroup,
    entries={"show": Entry(f"{__package__}.show", "Show every setting.")},
)
@common_options
def command(**_options: object) -> None:
    """Settings: flag, environment, project file, user file, default; in that order."""
