"""The `medusa schema` group."""

import click

from pipeline.cli.lazy import Entry, LazyGroup

_HERE = "pipeline.cli.commands.schema"


@click.group(
    "schema",
    cls=LazyGroup,
    entries={
        "register": Entry(f"{_HERE}.register", "Register a schema under a subject."),
        "check": Entry(f"{_HERE}.check", "Say whether a schema would fit a subject."),
        "list": Entry(f"{_HERE}.list", "List the subjects with their newest version."),
        "show": Entry(f"{_HERE}.show", "Print the schema of a subject or id."),
    },
)
def command() -> None:
    """Avro schemas in the registry: ours, or the one that registry.url names."""
