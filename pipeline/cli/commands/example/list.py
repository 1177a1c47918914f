"""`medusa example list`: list of the included examples."""

import click

from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.table import Table
from pipeline.examples.catalogue import EXAMPLES


@click.command("list")
@with_session
def command(session: Session) -> None:
    """List the examples. `init` writes the project of one, `example run` runs it.

    \b
    Examples:
      medusa example list
      medusa example list -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    rows = [
        {
            "name": example.name,
            "summary": example.summary,
            "outputs": [result.box for result in example.results],
        }
        for example in EXAMPLES.values()
    ]
    table = Table(
        ("name", "what"), tuple((example.name, example.summary) for example in EXAMPLES.values())
    )
    session.printer.show({"examples": rows}, table)
