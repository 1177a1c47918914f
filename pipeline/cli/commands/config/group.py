"""The `medusa config` group."""

import click

from pipeline.cli.lazy import Entry, LazyGroup


@click.group(
    "config",
    cls=LazyGroup,
    entries={"show": Entry("pipeline.cli.commands.config.show", "Show every setting.")},
)
def command() -> None:
    """Settings: flag, environment, project file, user file, default; in that order."""
